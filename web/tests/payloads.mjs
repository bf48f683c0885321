// What somebody may write into a document to make a page run a script, ask elsewhere or show something false. Each calls xss().

const SHAPES = [
  (n) => `<script>xss(${n})</script>`,
  (n) => `<img src=x onerror=xss(${n})>`,
  (n) => `<svg onload=xss(${n})>`,
  (n) => `<svg><script>xss(${n})</script></svg>`,
  (n) => `<svg><animate onbegin=xss(${n}) attributeName=x dur=1s>`,
  (n) => `<iframe srcdoc="<script>parent.xss(${n})</script>"></iframe>`,
  (n) => `<iframe src="javascript:parent.xss(${n})"></iframe>`,
  (n) => `<a href="javascript:xss(${n})">link</a>`,
  (n) => `javascript:xss(${n})`,
  (n) => `data:text/html,<script>opener.xss(${n})</script>`,
  (n) => `<body onload=xss(${n})>`,
  (n) => `<input autofocus onfocus=xss(${n})>`,
  (n) => `<details open ontoggle=xss(${n})>`,
  (n) => `<video><source onerror=xss(${n})></video>`,
  (n) => `<audio src=x onerror=xss(${n})>`,
  (n) => `<object data="javascript:xss(${n})"></object>`,
  (n) => `<embed src="http://192.0.2.1/${n}">`,
  (n) => `<link rel=stylesheet href="http://192.0.2.1/${n}.css">`,
  (n) => `<style>@import 'http://192.0.2.1/${n}.css';</style>`,
  (n) => `<base href="http://192.0.2.1/${n}/">`,
  (n) => `<meta http-equiv=refresh content="0;url=http://192.0.2.1/${n}">`,
  (n) => `<form action="http://192.0.2.1/${n}"><button>go</button></form>`,
  (n) => `<math><mtext><script>xss(${n})</script></mtext></math>`,
  (n) => `<template><img src=x onerror=xss(${n})></template>`,
  (n) => `<noscript><p title="</noscript><img src=x onerror=xss(${n})>">`,
  (n) => `<x onclick=xss(${n}) style="position:fixed;inset:0">x</x>`,
  (n) => `<div style="background:url(http://192.0.2.1/${n}.png)">`,
  (n) => `&lt;script&gt;xss(${n})&lt;/script&gt;`,
  (n) => `&#60;img src=x onerror=xss(${n})&#62;`,
  (n) => `\\u003cscript\\u003exss(${n})\\u003c/script\\u003e`,
  (n) => `{{constructor.constructor('xss(${n})')()}}`,
  (n) => `\${xss(${n})}`,
  (n) => `#{xss(${n})}`,
  (n) => `\u202e<script>xss(${n})</script>\u2066`,
  (n) => `\u0000<scr\u0000ipt>xss(${n})</script>`,
  (n) => `\u001b]0;xss(${n})\u0007<script>xss(${n})</script>`,
  (n) => `＜script＞xss(${n})＜/script＞`,
  (n) => `<ScRiPt\u2028>xss(${n})</sCrIpT>`,
];

const WRAPPERS = [(p) => p, (p) => `">${p}`, (p) => `'-${p}-'`, (p) => `</textarea></title></style>${p}`];

/** More than a hundred of them, all different. */
export const PAYLOADS = WRAPPERS.flatMap((wrap, nth) => SHAPES.map((shape, at) => wrap(shape(nth * SHAPES.length + at))));
