// SPDX-FileCopyrightText: 2026 The t5wild Authors
// SPDX-License-Identifier: Apache-2.0
// What every page needs that draws: its numbers, its colours, its theme. The
// numbers stand in the page, and so does the plotting library, compressed;
// nothing is fetched.
'use strict';

const data = JSON.parse(document.getElementById('data').textContent);
// {plot, draw, isLog, whole: whether its script shows the whole again itself}
const charts = [];
const LIGHT = ['#1f5fbf', '#d1600a', '#2c8a4b', '#b02e6f', '#6b4fb3',
  '#0f8c9c', '#8a6d00', '#a8442a', '#4a5a6a', '#7a7a00'];
const DARK = ['#7fb2ff', '#ffab66', '#7fd69a', '#ff8fc4', '#bda6ff',
  '#6fd6e3', '#e6cf6b', '#ff9c85', '#a9b8c8', '#d2d267'];
const IS_TOUCH = matchMedia('(pointer: coarse)').matches;

const isDark = () => document.documentElement.dataset.theme === 'dark';
const colours = () => (isDark() ? DARK : LIGHT);
const style = name =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function axisOf(title, extra) {
  return {title: {text: title, font: {size: 11}}, gridcolor: style('--grid'),
    linecolor: style('--line'), zeroline: false, automargin: true,
    tickfont: {size: 11}, exponentformat: 'SI', ...extra};
}

function redraw(chart) {
  const [traces, layout] = chart.draw(chart);
  layout.height = chart.plot.clientHeight;
  return Plotly.react(chart.plot, traces, layout, {
    responsive: true, displaylogo: false,
    displayModeBar: IS_TOUCH ? false : 'hover',
    modeBarButtons: [['zoom2d', 'pan2d',
      chart.whole ? 'autoScale2d' : 'resetScale2d', 'toImage']],
    doubleClick: chart.whole ? 'autosize' : 'reset+autosize',
    toImageButtonOptions: {format: 'svg', filename: chart.plot.id}});
}

const redrawAll = () => Promise.all(charts.map(redraw));

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  if (window.Plotly) redrawAll();
}

function listenToTheme() {
  const dark = matchMedia('(prefers-color-scheme: dark)');
  setTheme(dark.matches ? 'dark' : 'light');
  dark.addEventListener(
    'change', () => setTheme(dark.matches ? 'dark' : 'light'));
  document.getElementById('theme').addEventListener(
    'click', () => setTheme(isDark() ? 'light' : 'dark'));
  // Paper is white, and as wide as it is.
  let before = null;
  addEventListener('beforeprint', () => {
    before = document.documentElement.dataset.theme;
    document.documentElement.dataset.theme = 'light';
    document.querySelectorAll('details.printed').forEach(d => { d.open = true; });
    charts.forEach(c => {
      const [traces, layout] = c.draw(c);
      Plotly.react(c.plot, traces,
        {...layout, width: 660, height: c.plot.clientHeight});
    });
  });
  addEventListener('afterprint', () => setTheme(before));
}

// Whether there is a library to draw with; says why where it cannot be read.
async function loadLibrary() {
  try {
    return await unpackLibrary();
  } catch (error) {
    const note = document.getElementById('too-old');
    note.hidden = false;
    note.append(` (${error})`);
    return false;
  }
}

async function unpackLibrary() {
  const packed = document.getElementById('library');
  if (!packed) return false;
  const bytes = Uint8Array.from(
    atob(packed.textContent.trim()), c => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(
    new DecompressionStream('gzip'));
  const script = document.createElement('script');
  script.textContent = await new Response(stream).text();
  document.head.append(script);
  return true;
}
