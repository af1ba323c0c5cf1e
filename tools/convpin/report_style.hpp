// How the report's page looks, light and dark, and its one convenience.
#pragma once

namespace convpin::cli {

inline constexpr const char* kReportStyle = R"css(
:root{--back:#fff;--text:#1b1f24;--faint:#5b6570;--line:#dde1e6;--panel:#f5f7f9;--bar:#9fb3c8;--chosen:#1f6feb;--chosen-back:#e8f1ff;--warn:#8a4b00;--warn-back:#fff4e0}
@media (prefers-color-scheme:dark){:root{--back:#14181d;--text:#e4e8ec;--faint:#9aa5b1;--line:#313944;--panel:#1c222a;--bar:#566a80;--chosen:#6cb0ff;--chosen-back:#17304f;--warn:#ffc46b;--warn-back:#38290f}}
body{background:var(--back);color:var(--text);font:15px/1.45 system-ui,sans-serif;max-width:76rem;margin:0 auto;padding:1.5rem}
h1{font-size:1.6rem;margin:0 0 .5rem}h2{font-size:1.15rem;margin:1.8rem 0 .6rem}
code,.candidates td:first-child{font:13px/1.4 ui-monospace,monospace;overflow-wrap:anywhere}
.run{margin:.1rem 0;color:var(--faint)}
.warnings{background:var(--warn-back);border-left:4px solid var(--warn);padding:.1rem 1rem .4rem;margin:1rem 0;border-radius:4px}
.warnings h2{margin:.6rem 0 .2rem;color:var(--warn)}.warnings ul{margin:.2rem 0;padding-left:1.2rem;overflow-wrap:anywhere}
.tiles{display:flex;flex-wrap:wrap;gap:.8rem;margin:1.2rem 0}
.tile{background:var(--panel);border:1px solid var(--line);border-radius:6px;padding:.6rem 1rem;color:var(--faint)}
.tile b{display:block;font-size:1.35rem;color:var(--text)}
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.3rem .6rem;border-bottom:1px solid var(--line);vertical-align:top}
th{font-weight:600;color:var(--faint);font-size:13px}.num{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
.totals{max-width:60rem}.totals td:first-child,.facts{overflow-wrap:anywhere}td.num:has(.bar){width:12rem}
.bar{height:7px;margin-top:3px;background:var(--panel);border-radius:2px;min-width:6rem}.bar div{height:100%;background:var(--bar);border-radius:2px;min-width:1px}
.chosen{background:var(--chosen-back)}.chosen .bar div{background:var(--chosen)}.chosen td:first-child{font-weight:600;box-shadow:inset 4px 0 var(--chosen)}
.mark{display:inline-block;margin-left:.5rem;padding:0 .4rem;border:1px solid currentColor;border-radius:8px;font:12px/1.3 system-ui,sans-serif;white-space:nowrap;color:var(--faint)}
.chosen .mark{color:var(--chosen)}.none{text-align:right;color:var(--faint)}.notes{display:block;color:var(--faint);font:13px/1.4 system-ui,sans-serif}
.problem{border:1px solid var(--line);border-radius:6px;margin:.6rem 0;padding:.4rem .8rem}.problem>summary{cursor:pointer}
.facts{display:block;color:var(--faint);font-size:13px;margin:.1rem 0 .3rem 1rem}.wide{overflow-x:auto}
.more{margin:.4rem 0;font-size:13px}.more>summary,.more ul{color:var(--faint)}.more>summary{cursor:pointer}.more ul{margin:.3rem 0;overflow-wrap:anywhere}
input{font:inherit;width:100%;max-width:30rem;padding:.35rem .6rem;color:inherit;background:var(--panel);border:1px solid var(--line);border-radius:6px}
footer{margin-top:2rem;color:var(--faint);font-size:13px}
@media (max-width:40rem){body{padding:.8rem}.problem{padding:.4rem}table{font-size:13px}th,td{padding:.3rem .2rem}.bar{min-width:2.5rem}td.num:has(.bar){width:4.5rem}.totals .num{white-space:normal}.facts{margin-left:0}}
@media print{.problem{break-inside:avoid}input{display:none}}
)css";

inline constexpr const char* kReportScript = R"js(
document.getElementById("filter").addEventListener("input", event => {
  const words = event.target.value.toLowerCase().split(" ").filter(word => word);
  for (const problem of document.querySelectorAll(".problem")) {
    const text = problem.textContent.toLowerCase();
    problem.hidden = !words.every(word => text.includes(word));
  }
});
)js";

}  // namespace convpin::cli
