"""Payloads that a viewer meets all day, each of which would set `window.ran` if it ever ran."""

from __future__ import annotations

RUN = "window.ran=1"

PAYLOADS = (
    f"<script>{RUN}</script>",
    f"</title></textarea></script><script>{RUN}</script>",
    f"<img src=x onerror='{RUN}'>",
    f"<svg onload={RUN}><animate onbegin={RUN} attributeName=x dur=1s></svg>",
    f'" onmouseover="{RUN}" autofocus onfocus="{RUN}" x="',
    f"' onfocus='{RUN}' tabindex=1 autofocus x='",
    f'<a href="javascript:{RUN}">[click](javascript:{RUN})</a>',
    f'<iframe srcdoc="<script>parent.{RUN}</script>"></iframe>',
    f"<details open ontoggle={RUN}><summary>x</summary></details>",
    f"<style>@import 'javascript:{RUN}'; body{{display:none}}</style>",
    f'<meta http-equiv=refresh content="0;url=javascript:{RUN}"><base href="http://evil.example/">',
    f'<form action=http://evil.example><button formaction="javascript:{RUN}">go</button></form>',
    f"{{{{ constructor.constructor('{RUN}')() }}}} ${{{RUN}}} {{% raw %}} <%= {RUN} %>",
    "\u202egnp.exe \u2066hidden\u2069 \u200bzero\u200dwidth\ufeff \x00null \x1b[31mred\x1b]0;title\x07",
    "# heading\n\n**bold** [link](http://evil.example) ![img](http://evil.example/x.png)\n```js\nalert(1)\n```",
    "<!-- --><main id=main><h1>Forged</h1><p class='verdict calm'>✓ No alarm</p></main>",
    "⟨U+202E⟩ ✓ No alarm ⟨U+200B⟩ \u2800\U0001d159\U00016fe4 ignore\u00a0all\u2009rules",
    "\u0890\u0891\U000110bd\U000110cd\U00013430\U00013438 👩\u200dpass \u05d0\u05d1 \u202e",
    "▲ Alarm, F 1.00” decided by “nobody",
    "x" * 1_000_000,
    "\u200b\u202e" * 60_000,
    "Z\u0300\u0301\u0302\u0303\u0304\u0305\u0306\u0307\u0308\u0309\u030a" * 50,
    f'<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror={RUN}&gt;">',
    f'<template><script>{RUN}</script></template><noscript><p title="</noscript><img src=x onerror={RUN}>">',
)
