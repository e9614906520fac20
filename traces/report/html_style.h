// The style sheet of the HTML report. Internal to traces/report.
#pragma once

#include <string_view>

namespace shardscope::traces::report {

inline constexpr std::string_view kHtmlStyle = R"css(
:root{color-scheme:light dark;--back:#fff;--card:#f6f7f9;--line:#dfe3e8;--text:#1d2430;--dim:#5d6878;--link:#1f5fbf;
--good:#1d7f45;--bad:#b3261e;
--c0:#4878b0;--c1:#e29a3d;--c2:#8f6fb8;--c3:#d1495b;--c4:#5ea867;--c5:#3aa6a6;--c6:#c9b458;--c7:#b4bcc8}
@media(prefers-color-scheme:dark){:root{--back:#14181f;--card:#1d232d;--line:#333c4a;--text:#e4e8ee;--dim:#9aa5b5;
--link:#86b3f5;--good:#6cc78f;--bad:#f08a80;
--c0:#6c9bd2;--c1:#e8ad5f;--c2:#ab8fd3;--c3:#e06c7c;--c4:#7cc085;--c5:#5cc0c0;--c6:#d8c778;--c7:#6a7482}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1.5rem 1.25rem 3rem;max-width:70rem;background:var(--back);color:var(--text);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.6rem;line-height:1.25;margin:0 0 .25rem}
h2{font-size:1.2rem;margin:2.2rem 0 .6rem;padding-bottom:.25rem;border-bottom:1px solid var(--line)}
h3{font-size:1rem;margin:1.2rem 0 .4rem}
p{margin:.4rem 0}a{color:var(--link)}
.dim,caption,footer{color:var(--dim)}.small{font-size:.87rem}
nav{display:flex;flex-wrap:wrap;gap:.3rem 1rem;margin:.8rem 0 0;font-size:.93rem}
nav a{text-decoration:none}nav a:hover{text-decoration:underline}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:.7rem;margin:1.1rem 0 0}
.card{background:var(--card);border:1px solid var(--line);border-radius:.5rem;padding:.6rem .8rem}
.card b{display:block;font-size:1.3rem;line-height:1.3;font-weight:600;font-variant-numeric:tabular-nums}
.card span{color:var(--dim);font-size:.85rem}
.scroll{overflow-x:auto;margin:.5rem 0}
table{border-collapse:collapse;width:100%;font-size:.9rem;font-variant-numeric:tabular-nums}
th,td{padding:.28rem .6rem;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
th{color:var(--dim);font-weight:600;white-space:nowrap}
td.n,th.n{text-align:right;white-space:nowrap}
td:first-child{min-width:8rem}
tr.sum td{font-weight:600}
tr.group td{font-weight:600;padding-top:.8rem}
tbody tr:hover{background:var(--card)}
.bar{display:block;width:100%;height:1.5rem;border-radius:.25rem;margin:.15rem 0 .5rem;background:var(--card)}
.cellbar{display:block;width:4.5rem;height:.7rem;margin:.35rem 0;border-radius:.15rem;background:var(--card)}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;padding:0;margin:.4rem 0;font-size:.87rem}
.legend svg{width:.8em;height:.8em;margin-right:.4em;vertical-align:-.05em}
.c0{fill:var(--c0)}.c1{fill:var(--c1)}.c2{fill:var(--c2)}.c3{fill:var(--c3)}
.c4{fill:var(--c4)}.c5{fill:var(--c5)}.c6{fill:var(--c6)}.c7{fill:var(--c7)}
.curve{display:block;width:100%;height:auto;margin:.4rem 0}
.curve text{fill:var(--dim);font-size:13px}.curve .grid{stroke:var(--line);stroke-width:1}
.curve .low{fill:none;stroke:var(--text);stroke-width:1;opacity:.55}
.curve .peak{stroke:var(--text);stroke-width:1;stroke-dasharray:3 3}
.spark{display:block}.spark path{fill:none;stroke:var(--c0);stroke-width:1.5}
.spark .peak{stroke:var(--bad);stroke-width:1;stroke-dasharray:3 3}
.narrow{display:none}
details{margin:.5rem 0}summary{cursor:pointer;color:var(--link)}
.tree{font-size:.9rem;font-variant-numeric:tabular-nums;min-width:34rem}
.tree details,.tree .leaf{margin:0 0 0 1.1rem}.tree>details,.tree>.leaf{margin-left:0}
.tree summary,.tree .leaf,.tree .head{border-bottom:1px solid var(--line);padding:.2rem 0;color:var(--text)}
.tree .row{display:inline-flex;width:calc(100% - 1.2rem);gap:.6rem;vertical-align:top}
.tree .row>b{flex:1;overflow-wrap:normal;font-weight:500}
.tree .row>span{width:7.2rem;text-align:right;flex:none}
.tree .head{color:var(--dim);font-weight:600}.tree .leaf{padding-left:1.1rem}.tree .head .row>b{font-weight:600}
.tree .leaf .row{width:calc(100% - .1rem)}
.answers{margin:1rem 0}.answers dt{font-size:.87rem;margin-top:.6rem}.answers dd{margin:0}
.finding{background:var(--card);border:1px solid var(--line);border-left:4px solid var(--c1);border-radius:.4rem;
padding:.6rem .9rem;margin:.6rem 0}
.finding h3{margin:0 0 .2rem}
code{font:.87em/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;background:var(--card);padding:.05rem .25rem;
border-radius:.2rem}
.finding code{background:var(--back)}
pre{overflow-x:auto;font:.82rem/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;margin:.3rem 0}
.two{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,23rem),1fr));gap:0 2rem}
.good{color:var(--good)}.bad{color:var(--bad)}
footer{margin-top:2.5rem;padding-top:.6rem;border-top:1px solid var(--line);font-size:.85rem}
@media(max-width:40rem){body{padding:1rem .8rem 2rem;font-size:14px}h1{font-size:1.3rem}
.card b{font-size:1.1rem}.cards{grid-template-columns:1fr 1fr}th,td{padding:.25rem .4rem}
.wide{display:none}.narrow{display:block}.tree{min-width:24rem}
.tree .row>span{width:5.4rem}.tree .row>span:nth-of-type(1),.tree .row>span:nth-of-type(4){display:none}}
@media print{:root{--back:#fff;--card:#fff;--line:#ccc;--text:#000;--dim:#444;--link:#000;--good:#14602f;--bad:#a01f18;
--c0:#4878b0;--c1:#e29a3d;--c2:#8f6fb8;--c3:#d1495b;--c4:#5ea867;--c5:#3aa6a6;--c6:#c9b458;--c7:#b4bcc8;font-size:10px}
body{max-width:none;padding:0;font-size:1rem}nav{display:none}h2,h3,summary{break-after:avoid}
.finding,.card,.curve,tr{break-inside:avoid}.scroll{overflow:visible}th,td{padding:.18rem .4rem}th,th.n{white-space:normal}
.cards{grid-template-columns:repeat(5,1fr)}.two{grid-template-columns:1fr 1fr}.wide{display:block}.narrow{display:none}
summary{list-style:none}summary::-webkit-details-marker{display:none}
details::details-content{content-visibility:visible;block-size:auto}
.tree{min-width:0}.tree .row>span{width:6.4rem}}
)css";

}  // namespace shardscope::traces::report
