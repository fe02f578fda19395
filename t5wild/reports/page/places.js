// SPDX-FileCopyrightText: 2026 The t5wild Authors
// SPDX-License-Identifier: Apache-2.0
// Where a step, an event or a finding stands on the charts' horizontal axis:
// at its step, or at its moment; after shared.js.

const view = {smoothing: 0.6, axis: 'step', range: null};
// Events that are lines through every chart.
const LINES = ['restart', 'rewind', 'not_finite', 'fault'];

const isOverSteps = () => view.axis === 'step';

// Seconds since the beginning at which a step was finished, by the run's clock.
function secondsAt(step) {
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

const across = steps => (isOverSteps() ?
  steps : steps.map(step => secondsAt(step) / data.time.seconds));

// Of an event or a finding, whose own moment is known or null: a step that was
// passed twice has two.
function placeOf({step, seconds}) {
  if (isOverSteps()) return step;
  return (seconds ?? secondsAt(step)) / data.time.seconds;
}

function nameOfAxis() {
  if (data.across) return data.across;
  return isOverSteps() ? 'step' : `${data.time.unit} since the beginning`;
}

// All charts show the same part of the run, so that they can be compared: over
// steps to the planned end, but for a run that has only begun; over time all
// that happened.
function wholeRange() {
  const ends = isOverSteps() ? [...data.clock[0]] : across(data.clock[0]);
  if (!ends.length) return [0, 1];
  if (!data.across) ends.push(...data.events.map(placeOf));
  let first = Infinity;
  let last = -Infinity;
  for (const end of ends) {
    first = Math.min(first, end);
    last = Math.max(last, end);
  }
  if (!isOverSteps()) first = Math.min(0, first);
  const planned = isOverSteps() ? data.total_steps || 0 : 0;
  if (planned > last && last > planned / 4) last = planned;
  const room = (last - first) * 0.02 || 0.5;
  return [first - room, last + room];
}

// What stands out, restarts and bad numbers are lines through every chart.
function marks() {
  const [first, last] = view.range || wholeRange();
  const found = (data.findings || []).filter(f => f.level !== 'note').map(f => ({
    x: placeOf(f), label: f.label, colour: `--${f.level}`, dash: 'dash',
    width: 1.6}));
  const befell = data.events.filter(e => LINES.includes(e.kind)).map(e => ({
    x: placeOf(e), label: data.kinds[e.kind], colour: `--event-${e.kind}`,
    dash: 'dot', width: 1.2}));
  // Two lines in one place are not told apart.
  const apart = (last - first) / 150;
  const drawn = [];
  for (const mark of [...found, ...befell]) {
    if (!drawn.some(d => Math.abs(d.x - mark.x) < apart)) drawn.push(mark);
  }
  const lines = drawn.slice(0, 60).map(mark => ({
    type: 'line', xref: 'x', yref: 'paper', x0: mark.x, x1: mark.x, y0: 0,
    y1: 1, layer: 'above',
    line: {color: style(mark.colour), width: mark.width, dash: mark.dash},
    label: {text: mark.label, textposition: 'middle', padding: 4,
      font: {size: 10, color: style(mark.colour)}}}));
  return [...twice(), ...lines];
}

// Steps that a restart did again: the curves show the second time alone.
function twice() {
  if (!isOverSteps()) return [];
  return data.events.filter(e => e.from < e.step).slice(0, 30).map(e => ({
    type: 'rect', xref: 'x', yref: 'paper', x0: e.from, x1: e.step, y0: 0,
    y1: 1, layer: 'below', line: {width: 0}, opacity: 0.1,
    fillcolor: style('--event-restart'),
    label: {text: 'done twice', textposition: 'bottom center',
      font: {size: 10, color: style('--ink')}}}));
}
