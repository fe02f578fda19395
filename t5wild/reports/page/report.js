// SPDX-FileCopyrightText: 2026 The t5wild Authors
// SPDX-License-Identifier: Apache-2.0
// Draws a report's curves, and a comparison's; after shared.js.

const view = {smoothing: 0.6, axis: 'step', range: null};
const EVENT_MARKS = {
  start: 'triangle-right', restart: 'triangle-right', gap: 'hourglass',
  slow: 'bowtie',
  rewind: 'triangle-left', skip: 'triangle-down',
  not_finite: 'x', fault: 'cross', spike: 'triangle-up', recorded: 'diamond',
  save: 'circle', evaluate: 'square', end: 'star'};

// Steps as hours since the first record, by the run's clock.
function hours(step) {
  const [steps, at] = data.clock;
  const last = steps.length - 1;
  if (last < 0) return null;
  if (step <= steps[0]) return at[0];
  if (step >= steps[last]) return at[last];
  let low = 0;
  let high = last;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (steps[middle] <= step) low = middle; else high = middle;
  }
  const share = (step - steps[low]) / (steps[high] - steps[low]);
  return at[low] + share * (at[high] - at[low]);
}

// All charts show the same part of the run, so that they can be compared: over
// steps to the planned end, but for a run that has only begun.
function wholeRange() {
  const ends = view.axis === 'step' ? data.clock[0] : data.clock[1];
  if (!ends.length) return [0, 1];
  const first = ends[0];
  let last = ends[ends.length - 1];
  const planned = view.axis === 'step' ? data.total_steps || 0 : 0;
  if (planned > last && last > planned / 4) last = planned;
  const room = (last - first) * 0.02 || 0.5;
  return [first - room, last + room];
}

const across = steps => (view.axis === 'step' ? steps : steps.map(hours));

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
  const x = axisOf(data.across || view.axis, {
    exponentformat: 'none', separatethousands: true});
  x.range = view.range ? [...view.range] : wholeRange();
  // There is nothing between two steps.
  const [first, last] = wholeRange();
  if ((data.across || view.axis) === 'step' && last - first < 9) x.dtick = 1;
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

// What stands out, restarts and bad numbers are lines through every chart.
function marks() {
  const kinds = ['restart', 'rewind', 'not_finite', 'fault'];
  const found = (data.findings || []).filter(f => f.level !== 'note').map(f => ({
    x: view.axis === 'step' ? f.step : hours(f.step),
    colour: `--${f.level}`, dash: 'dash', width: 1.3}));
  const befell = data.events.filter(e => kinds.includes(e.kind)).map(e => ({
    x: view.axis === 'step' ? e.step : e.hours,
    colour: `--event-${e.kind}`, dash: 'dot', width: 1}));
  return [...found, ...befell].slice(0, 60).map(mark => ({
    type: 'line', xref: 'x', yref: 'paper', x0: mark.x, x1: mark.x, y0: 0,
    y1: 1, layer: 'below',
    line: {color: style(mark.colour), width: mark.width, dash: mark.dash}}));
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

function tracesOf(line, index, isNoisy) {
  const colour = colours()[index % colours().length];
  const isSmooth = isNoisy && view.smoothing > 0 && line.points > 10;
  const few = line.x.length < 40;
  const traces = [{
    x: across(line.x), y: line.y, name: line.label, legendgroup: line.label,
    mode: few ? 'lines+markers' : 'lines', marker: {size: 5},
    line: {color: colour, width: few ? 1.6 : 1.1}, opacity: isSmooth ? 0.35 : 1,
    showlegend: !isSmooth, hovertemplate: '%{y:.6~g}',
  }];
  if (isSmooth) {
    const means = line.mean_x.length ? line.mean_x : line.x;
    const values = line.mean_x.length ? line.mean_y : line.y;
    traces.push({x: across(means), y: smooth(values), name: line.label,
      legendgroup: line.label, mode: 'lines', line: {color: colour, width: 2.2},
      hoverinfo: 'skip'});
  }
  if (line.bad.length) {
    const top = line.y.length ? Math.max(...line.y) : 1;
    traces.push({x: across(line.bad.map(b => b[0])),
      y: line.bad.map(() => top), mode: 'markers', showlegend: false,
      name: line.label, text: line.bad.map(b => b[1]),
      hovertemplate: '%{text}', marker: {symbol: 'x', size: 6,
        color: style('--bad')}});
  }
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

function drawPanel(chart, panel) {
  const traces = panel.is_stacked ? panel.lines.map(stackOf) :
    panel.lines.flatMap((line, i) => tracesOf(line, i, panel.is_noisy));
  const isLog = chart.isLog && !panel.is_stacked;
  const layout = layoutOf(isLog, {showlegend: panel.lines.length > 1});
  if (!panel.is_stacked) {
    Object.assign(layout.yaxis, rangeOfConstant(panel, isLog));
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
    return {x: mine.map(e => (view.axis === 'step' ? e.step : e.hours)),
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
  let range;
  if (change['xaxis.range[0]'] !== undefined) {
    range = [change['xaxis.range[0]'], change['xaxis.range[1]']];
  } else if (change['xaxis.range']) {
    range = change['xaxis.range'];
  } else if (change['xaxis.autorange']) {
    setRange(null, null);
    return;
  } else {
    return;
  }
  setRange(range, source);
}

function setRange(range, source) {
  view.range = range;
  isFollowing = true;
  const change = {'xaxis.range': range || wholeRange()};
  Promise.all(charts.filter(c => c.plot !== source).map(
    c => Plotly.relayout(c.plot, {...change}))).finally(() => {
    isFollowing = false;
  });
}

function addChart(id, draw, isLog) {
  const plot = document.getElementById(id);
  if (!plot) return;
  const chart = {plot, draw, isLog};
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
    button.addEventListener('click', () => lookAt(Number(button.dataset.step)));
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

// Zooms to a tenth of the run around a step.
function lookAt(step) {
  const [steps] = data.clock;
  const whole = steps[steps.length - 1] - steps[0];
  let ends = [step - whole / 20, step + whole / 20];
  if (view.axis !== 'step') ends = ends.map(hours);
  setRange(ends, null);
  document.getElementById('curves').scrollIntoView({behavior: 'smooth'});
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
