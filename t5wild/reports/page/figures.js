// SPDX-FileCopyrightText: 2026 The t5wild Authors
// SPDX-License-Identifier: Apache-2.0
// Draws figures that are made ready in Python but for their colours; after
// shared.js. `ink` of a trace is the number of its colour.

function coloured(trace) {
  if (trace.ink === undefined) return {...trace};
  const colour = colours()[trace.ink % colours().length];
  const {ink, band, ...rest} = trace;
  if (band) {
    return {...rest, fill: 'toself', fillcolor: `${colour}33`,
      line: {width: 0, color: colour}};
  }
  return {...rest, marker: {size: 8, ...trace.marker, color: colour},
    line: {width: 1.6, ...trace.line, color: colour}};
}

function layoutOf(figure) {
  return {
    margin: figure.margin || {l: 62, r: 14, t: 10, b: 44},
    paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)',
    font: {family: 'system-ui, sans-serif', color: style('--ink'), size: 12},
    hoverlabel: {bgcolor: style('--card'), bordercolor: style('--line'),
      font: {color: style('--ink'), size: 12}, namelength: -1},
    hovermode: 'closest', 
    // On a phone it would leave no room for the figure; a tap tells the same.
    showlegend: figure.has_legend && innerWidth > 600,
    legend: {orientation: 'h', x: 0, y: 1, yanchor: 'bottom', font: {size: 11}},
    modebar: {bgcolor: 'rgba(0,0,0,0)', color: style('--soft'),
      activecolor: style('--accent')},
    dragmode: IS_TOUCH ? false : 'zoom',
    annotations: figure.annotations || [],
    xaxis: axisOf(figure.x.title, figure.x.axis),
    yaxis: axisOf(figure.y.title, figure.y.axis)};
}

async function main() {
  listenToTheme();
  if (!await loadLibrary()) return;
  await Promise.all(data.figures.map(figure => {
    const plot = document.getElementById(`plot-${figure.key}`);
    const chart = {plot,
      draw: () => [figure.traces.map(coloured), layoutOf(figure)]};
    charts.push(chart);
    return redraw(chart);
  }));
  document.documentElement.dataset.drawn = 'yes';
}

main();
