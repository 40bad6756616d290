// The style sheet of the HTML report. Series have the colours of Okabe & Ito 2008, told apart with
// every kind of colour vision, darker on white and lighter on black.
#pragma once

#include <string_view>

#include "wanamaker/core/version.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

inline constexpr std::string_view report_style = R"css(
:root { color-scheme: light dark; --back: #fff; --text: #1a1c1f; --quiet: #5a6069; --rule: #d8dbe0;
  --panel: #f5f6f8; --link: #0b5cad; --good: #00694c; --bad: #a83a00; --open: #5a6069;
  --s0: #0072b2; --s1: #c04a00; --s2: #00805d; --s3: #a8548a; --s4: #8a6100; --s5: #666b73;
  --loss: #d55e00; --gain: #0072b2 }
@media (prefers-color-scheme: dark) { :root { --back: #14171a; --text: #e4e7eb; --quiet: #a2a9b3;
  --rule: #363c44; --panel: #1d2126; --link: #7cc0ff; --good: #4fd1a5; --bad: #ff9d66;
  --open: #a2a9b3; --s0: #56b4e9; --s1: #ff8a45; --s2: #2fc79a; --s3: #e59bc9; --s4: #f0c04a;
  --s5: #a7adb6; --loss: #d55e00; --gain: #2a8fd0 } }
* { box-sizing: border-box }
html { background: var(--back); color: var(--text); -webkit-text-size-adjust: 100% }
body { margin: 0 auto; max-width: 68rem; padding: 1rem clamp(.75rem, 3vw, 2rem) 4rem;
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif }
h1 { font-size: 1.5rem; line-height: 1.2; margin: .5rem 0 1rem }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .5rem; padding-top: .5rem; border-top: 1px solid var(--rule) }
h3 { font-size: 1.05rem; margin: 1.75rem 0 .5rem }
h4 { font-size: .95rem; margin: 1.25rem 0 .25rem }
p { max-width: 46rem; margin: .5rem 0; overflow-wrap: anywhere }
.lead { font-size: 1.12rem; margin: .75rem 0 }
.note { color: var(--quiet); font-size: .9rem }
a { color: var(--link) }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1rem; list-style: none; padding: .6rem .9rem;
  margin: 1.25rem 0 0; background: var(--panel); border-radius: 6px; font-size: .92rem }
figure { margin: 1rem 0 1.5rem }
figcaption { font-weight: 600; margin-bottom: .35rem }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 15rem), 1fr)); gap: .75rem }
.one { max-width: 34rem }
svg.plot { display: block; width: 100%; height: auto; color: var(--text);
  font: 11px system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif }
.plot text { fill: currentColor; font-variant-numeric: tabular-nums } .plot .title { font-weight: 600 }
.plot path { fill: none } .grid-line, .plot .grid { stroke: var(--rule) } .plot .zero { stroke: var(--quiet) }
.plot .curve { stroke-width: 1.6 } .plot .whisker { stroke-width: 1.8 }
.plot .loss { fill: var(--loss) } .plot .gain { fill: var(--gain) }
.plot .s0 { stroke: var(--s0) } .plot .s1 { stroke: var(--s1); stroke-dasharray: none }
.plot .s2 { stroke: var(--s2) } .plot .s3 { stroke: var(--s3) }
.plot .s4 { stroke: var(--s4) } .plot .s5 { stroke: var(--s5) }
.plot .curve.s3 { stroke-dasharray: 5 3 } .plot .curve.s2 { stroke-dasharray: 2 3 }
.plot .mark { stroke: var(--back); stroke-width: .8 }
.plot .mark.s0 { fill: var(--s0) } .plot .mark.s1 { fill: var(--s1) } .plot .mark.s2 { fill: var(--s2) }
.plot .mark.s3 { fill: var(--s3) } .plot .mark.s4 { fill: var(--s4) } .plot .mark.s5 { fill: var(--s5) }
.wide { overflow-x: auto; max-width: 100%; margin: .5rem 0 }
table { border-collapse: collapse; font-size: .88rem; line-height: 1.35 }
th, td { text-align: left; vertical-align: top; padding: .3rem .7rem .3rem 0; border-bottom: 1px solid var(--rule) }
th { font-weight: 600; color: var(--quiet); vertical-align: bottom }
th.n { text-align: right }
td.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums }
td.long { min-width: 14rem; overflow-wrap: anywhere }
td.holds, td.fails, td.open { font-weight: 600; min-width: 6.5rem }
td.holds { color: var(--good) } td.holds::before { content: "✓ " }
td.fails { color: var(--bad) } td.fails::before { content: "✗ " }
td.open { color: var(--open) } td.open::before { content: "? " }
details { margin: .5rem 0 } summary { cursor: pointer; color: var(--link); font-size: .9rem }
@media print { :root { --back: #fff; --text: #000; --quiet: #444; --rule: #bbb; --panel: #fff; --link: #000;
  --good: #00694c; --bad: #a83a00; --open: #444; --s0: #0072b2; --s1: #c04a00; --s2: #00805d;
  --s3: #a8548a; --s4: #8a6100; --s5: #666b73; --loss: #d55e00; --gain: #0072b2 }
  body { max-width: none; font-size: 10pt; padding: 0 } nav, details { display: none }
  figure, tr { break-inside: avoid } h2, h3, figcaption { break-after: avoid } .wide { overflow: visible }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact } }
)css";

}  // namespace wanamaker::inline WANAMAKER_ABI
