// SPDX-FileCopyrightText: 2026 The t5wild Authors
// SPDX-License-Identifier: Apache-2.0
// Draws a report's curves, and a comparison's; after shared.js and places.js.

const EVENT_MARKS = {
  start: 'triangle-right', restart: 'triangle-right', gap: 'hourglass',
  slow: 'bowtie',
  rewind: 'triangle-left', skip: 'triangle-down',
  not_finite: 'x', fault: 'cross', spike: 'triangle-up', recorded: 'diamond',
  save: 'circle', evaluate: 'square', end: 'star'};

// Exponential moving average that starts at the first value.
function smooth(values) {
  let sum = 0;
  let weight = 0;
  return values.map(value => {
    sum = view.smoothing * sum + (1 - view.smoothing) * value;
    weight = view.smoothing * weight + (1 - view.smoothing);
    return sum / weight;
  });
}

function layoutOf(isLog, extra) {
  const x = axisOf(nameOfAxis(), {
    exponentformat: 'none', separatethousands: true});
  x.range = view.range ? [...view.range] : wholeRange();
  // There is nothing between two steps.
  const [first, last] = wholeRange();
  if (nameOfAxis() === 'step' && last - first < 9) x.dtick = 1;
  return {
    margin: {l: 52, r: 12, t: 8, b: 36}, paper_bgcolor: 'rgba(0,0,0,0)',
    plot_bgcolor: 'rgba(0,0,0,0)', hovermode: 'x unified',
    font: {family: 'system-ui, sans-serif', color: style('--ink'), size: 12},
    hoverlabel: {bgcolor: style('--card'), bordercolor: style('--line'),
      font: {color: style('--ink'), size: 12}, namelength: -1},
    legend: {orientation: 'h', x: 0, y: 1, yanchor: 'bottom',
      font: {size: 11}},
    modebar: {bgcolor: 'rgba(0,0,0,0)', color: style('--soft'),
      activecolor: style('--accent')},
    dragmode: IS_TOUCH ? false : 'zoom', showlegend: true,
    shapes: marks(), xaxis: x,
    yaxis: axisOf('', isLog ? {type: 'log', nticks: 6} : {}), ...extra};
}

// A scale for what does not change, which else would show noise of rounding.
function rangeOfConstant(panel, isLog) {
  const values = panel.lines.flatMap(line => line.y).filter(Number.isFinite);
  if (!values.length) return {};
  const low = Math.min(...values);
  const high = Math.max(...values);
  if (high - low > 1e-4 * Math.max(Math.abs(low), Math.abs(high))) return {};
  if (isLog) {
    return low > 0 ?
      {range: [Math.log10(low) - 1, Math.log10(high) + 1]} : {};
  }
  const room = 0.5 * Math.abs(high) || 1;
  return {range: [Math.min(0, low - room), Math.max(0, high + room)]};
}

// Crosses stand at the upper edge: a record that is no number has no height.
function crossesOf(line) {
  return {x: across(line.bad.map(b => b[0])), y: line.bad.map(() => 0.97),
    yaxis: 'y2', mode: 'markers', name: 'NaN or infinite: no value',
    hoverinfo: 'skip', marker: {symbol: 'x', size: 7, color: style('--bad')}};
}

// What pointing at a line with bad records tells: each record once, so that a
// bad one is not told with the value of its neighbour.
function toldOf(line, colour) {
  const all = [...line.x.map((x, i) => [x, line.y[i], null]),
    ...line.bad.map(([x, word]) => [x, null, word])];
  all.sort((a, b) => a[0] - b[0]);
  let last = line.y[0] ?? 1;
  const heights = all.map(([, y]) => { last = y ?? last; return last; });
  return {x: across(all.map(each => each[0])), y: heights, name: line.label,
    legendgroup: line.label, mode: 'markers', showlegend: false,
    marker: {size: 1, opacity: 0, color: colour},
    text: all.map(([, y, word]) => word ?? String(y)),
    hovertemplate: '%{text}'};
}

function tracesOf(line, index, isNoisy) {
  const colour = colours()[index % colours().length];
  const isSmooth = isNoisy && view.smoothing > 0 && line.points > 10;
  const few = line.x.length < 40;
  const isBad = line.bad.length > 0;
  const traces = [{
    x: across(line.x), y: line.y, name: line.label, legendgroup: line.label,
    mode: few ? 'lines+markers' : 'lines', marker: {size: 5},
    line: {color: colour, width: few ? 1.6 : 1.1}, opacity: isSmooth ? 0.35 : 1,
    showlegend: !isSmooth,
    ...(isBad ? {hoverinfo: 'skip'} : {hovertemplate: '%{y:.6~g}'}),
  }];
  if (isSmooth) {
    const means = line.mean_x.length ? line.mean_x : line.x;
    const values = line.mean_x.length ? line.mean_y : line.y;
    traces.push({x: across(means), y: smooth(values), name: line.label,
      legendgroup: line.label, mode: 'lines', line: {color: colour, width: 2.2},
      hoverinfo: 'skip'});
  }
  if (isBad) traces.push(toldOf(line, colour), crossesOf(line));
  return traces;
}

function stackOf(line, index) {
  const isThinned = line.mean_x.length > 0;
  const colour = colours()[index % colours().length];
  return {x: across(isThinned ? line.mean_x : line.x),
    y: isThinned ? line.mean_y : line.y, name: line.label, mode: 'lines',
    stackgroup: 'one', line: {width: 0.5, color: colour},
    hovertemplate: '%{y:.4~g}'};
}

// Of a part of the run its own values fill the height, not the whole run's.
function rangeInView(traces, isLog) {
  const [from, to] = view.range;
  const values = traces.filter(trace => !trace.yaxis).flatMap(
    trace => trace.y.filter((y, i) => Number.isFinite(y) &&
      trace.x[i] >= from && trace.x[i] <= to && (y > 0 || !isLog)));
  if (!values.length) return {};
  const ends = [Math.min(...values), Math.max(...values)];
  const [low, high] = isLog ? ends.map(Math.log10) : ends;
  const room = 0.06 * (high - low) || 0.05 * Math.abs(high) || 1;
  return {range: [low - room, high + room]};
}

function rangeOfStack(traces) {
  const sums = traces[0].y.map(
    (_, i) => traces.reduce((sum, trace) => sum + (trace.y[i] || 0), 0));
  const {range} = rangeInView([{x: traces[0].x, y: sums}], false);
  return range ? {range: [0, range[1]]} : {};
}

function drawPanel(chart, panel) {
  const traces = panel.is_stacked ? panel.lines.map(stackOf) :
    panel.lines.flatMap((line, i) => tracesOf(line, i, panel.is_noisy));
  const isLog = chart.isLog && !panel.is_stacked;
  const hasBad = panel.lines.some(line => line.bad.length);
  const layout = layoutOf(
    isLog, {showlegend: panel.lines.length > 1 || hasBad});
  if (panel.is_stacked) {
    if (view.range) Object.assign(layout.yaxis, rangeOfStack(traces));
    return [traces, layout];
  }
  if (view.range) Object.assign(layout.yaxis, rangeInView(traces, isLog));
  Object.assign(layout.yaxis, rangeOfConstant(panel, isLog));
  if (hasBad) {
    layout.yaxis2 = {overlaying: 'y', range: [0, 1], visible: false,
      fixedrange: true};
  }
  return [traces, layout];
}

function drawHeatMap(map) {
  const x = across(map.steps);
  const z = map.values.map(
    row => row.map(v => (typeof v === 'number' && v > 0 ? Math.log10(v) : null)));
  const bad = [];
  map.values.forEach((row, i) => row.forEach((v, j) => {
    if (typeof v === 'string') bad.push([x[j], map.groups[i]]);
  }));
  const finite = z.flat().filter(v => v !== null);
  const ticks = [];
  // On a phone its scale stands above it, where else are the buttons.
  const isNarrow = innerWidth <= 600;
  const above = {orientation: 'h', y: 1, yanchor: 'bottom'};
  if (finite.length) {
    const low = Math.floor(Math.min(...finite));
    const high = Math.ceil(Math.max(...finite));
    for (let t = low; t <= high; t++) ticks.push(t);
  }
  const traces = [{type: 'heatmap', x, y: map.groups, z, colorscale: 'Viridis',
    customdata: map.values, hoverongaps: false,
    hovertemplate: '%{y}<br>%{x:,}: %{customdata:.4~g}<extra></extra>',
    colorbar: {thickness: 10, outlinewidth: 0, tickvals: ticks,
      ticktext: ticks.map(t => String(Number(`1e${t}`))),
      tickfont: {size: 10}, ...(isNarrow ? above : {})}}];
  if (bad.length) {
    traces.push({x: bad.map(b => b[0]), y: bad.map(b => b[1]), mode: 'markers',
      marker: {symbol: 'x', color: style('--bad'), size: 7},
      hovertemplate: 'NaN or infinite<extra></extra>', showlegend: false});
  }
  // Above the map there is room for the buttons, which else cover the colours.
  return [traces, layoutOf(false, {shapes: [], hovermode: 'closest',
    showlegend: false, margin: {l: 52, r: 12, t: 34, b: 36},
    yaxis: axisOf('', {type: 'category', autorange: 'reversed',
      tickfont: {size: isNarrow ? 9 : 11}})})];
}

function drawTimeline() {
  const kinds = Object.keys(data.kinds).filter(
    kind => data.events.some(e => e.kind === kind));
  const traces = kinds.map(kind => {
    const mine = data.events.filter(e => e.kind === kind);
    return {x: mine.map(placeOf),
      y: mine.map(() => data.kinds[kind]), text: mine.map(e => e.text),
      mode: 'markers', hovertemplate: '%{text}<extra></extra>',
      cliponaxis: false, marker: {symbol: EVENT_MARKS[kind], size: 10,
        color: style(`--event-${kind}`)}};
  });
  return [traces, layoutOf(false, {showlegend: false, hovermode: 'closest',
    shapes: [], yaxis: axisOf('', {type: 'category', autorange: 'reversed',
      fixedrange: true, ticks: 'outside', ticklen: 6,
      tickcolor: 'rgba(0,0,0,0)'})})];
}

let isFollowing = false;
function follow(source, change) {
  if (isFollowing) return;
  const isBox = change['yaxis.range[0]'] !== undefined;
  if (change['xaxis.range[0]'] !== undefined) {
    // A box keeps the height that was drawn.
    setRange([change['xaxis.range[0]'], change['xaxis.range[1]']],
      isBox ? source : null);
  } else if (change['xaxis.range']) {
    setRange(change['xaxis.range'], isBox ? source : null);
  } else if (change['xaxis.autorange']) {
    setRange(null, null);
  }
}

// All charts show a part of the run, each with the height that suits it there.
function setRange(range, source) {
  view.range = range;
  isFollowing = true;
  Promise.all(charts.filter(c => c.plot !== source).map(redraw)).finally(
    () => { isFollowing = false; });
}

function addChart(id, draw, isLog) {
  const plot = document.getElementById(id);
  if (!plot) return;
  const chart = {plot, draw, isLog, whole: true};
  charts.push(chart);
  const button = plot.parentElement.querySelector('button.log');
  if (button) {
    button.setAttribute('aria-pressed', isLog);
    button.addEventListener('click', () => {
      chart.isLog = !chart.isLog;
      button.setAttribute('aria-pressed', chart.isLog);
      redraw(chart);
    });
  }
  redraw(chart).then(() => {
    plot.on('plotly_relayout', change => follow(plot, change));
  });
}

function listen() {
  const range = document.getElementById('smoothing');
  range.addEventListener('input', () => {
    view.smoothing = Number(range.value);
    showSmoothing();
    redrawAll();
  });
  document.getElementById('axis')?.addEventListener('change', event => {
    view.axis = event.target.value;
    view.range = null;
    redrawAll();
  });
  document.getElementById('whole').addEventListener(
    'click', () => setRange(null, null));
  document.querySelectorAll('button[data-step]').forEach(button => {
    button.addEventListener('click', () => lookAt(button.dataset));
  });
}

// A served page comes anew while it is looked at as it came: not zoomed in.
function keepLive() {
  if (!data.reload_seconds) return;
  setInterval(() => {
    if (!view.range && document.visibilityState === 'visible') {
      sessionStorage.setItem('view', JSON.stringify(
        {smoothing: view.smoothing, axis: view.axis}));
      location.reload();
    }
  }, 1000 * data.reload_seconds);
}

function recallView() {
  if (!data.reload_seconds) return;
  Object.assign(view, JSON.parse(sessionStorage.getItem('view') || '{}'));
  const range = document.getElementById('smoothing');
  if (!range) return;
  range.value = view.smoothing;
  document.getElementById('axis').value = view.axis;
  showSmoothing();
}

function showSmoothing() {
  document.getElementById('smoothing-value').textContent =
    view.smoothing ? view.smoothing.toFixed(2) : 'off';
}

// Zooms to a tenth of the run around a finding, and shows its chart.
function lookAt({step, seconds, chart}) {
  const place = placeOf({
    step: Number(step), seconds: seconds === undefined ? null : Number(seconds)});
  const [first, last] = wholeRange();
  setRange([place - (last - first) / 20, place + (last - first) / 20], null);
  document.querySelectorAll('.shown').forEach(
    figure => figure.classList.remove('shown'));
  const figure = document.getElementById(`plot-${chart}`)?.parentElement;
  figure?.classList.add('shown');
  (figure || document.getElementById('curves')).scrollIntoView(
    {behavior: 'smooth', block: figure ? 'center' : 'start'});
}

async function main() {
  listenToTheme();
  recallView();
  keepLive();
  if (!await loadLibrary()) return;
  for (const panel of data.panels) {
    addChart(
      `plot-${panel.key}`, chart => drawPanel(chart, panel), panel.is_log);
    // The browser shows each chart as soon as it is there.
    await new Promise(resolve => { setTimeout(resolve, 0); });
  }
  if (data.heat_map) {
    addChart('plot-heat', () => drawHeatMap(data.heat_map), false);
  }
  if (data.events.length) addChart('plot-timeline', drawTimeline, false);
  listen();
  document.documentElement.dataset.drawn = 'yes';
}

main();
