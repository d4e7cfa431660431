// Light or dark: what the system says, until the reader says otherwise. Loaded before the page is drawn.
(() => {
  const root = document.documentElement;
  const remembered = () => { try { return localStorage.getItem("firecircle-theme"); } catch { return null; } };
  const remember = (theme) => { try { localStorage.setItem("firecircle-theme", theme); } catch { /* a file may not */ } };
  const theme = remembered();
  if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  document.addEventListener("click", (event) => {
    if (!(event.target instanceof Element) || !event.target.closest("#theme")) return;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    remember(root.dataset.theme);
  });
})();
