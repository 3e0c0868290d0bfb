// Only for services with a token: the page asks for it, keeps it in this closure, and fetches each
// board with it. Without a token every link and form of the page works by itself, without script.
"use strict";
(() => {
  const form = document.getElementById("token-form");
  if (!form) return;
  let token = "";
  let timer = 0;
  let turn = 0;

  async function open(address, push) {
    clearTimeout(timer);
    const mine = ++turn;
    const answer = await fetch(address, {
      headers: { Accept: "text/html", Authorization: "Bearer " + token },
      cache: "no-store",
      credentials: "omit",
    });
    const text = await answer.text();
    // A later click has overtaken this one.
    if (mine !== turn) return;
    const found = new DOMParser().parseFromString(text, "text/html");
    if (answer.status === 401 || found.getElementById("token-form")) {
      throw new Error("This token is not known here.");
    }
    const reload = found.querySelector("meta[http-equiv=refresh]");
    document.title = found.title;
    document.body.replaceChildren(...found.body.childNodes);
    if (push) history.pushState(null, "", address);
    if (reload) timer = setTimeout(() => show(address, false), 1000 * Number(reload.content));
  }

  function show(address, push) {
    open(address, push).catch((error) => {
      const place = document.getElementById("token-problem");
      if (place) place.textContent = error.message;
    });
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    token = document.getElementById("token").value.trim();
    show(location.pathname + location.search, false);
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='/?'], a[href='/']");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    show(link.getAttribute("href"), true);
  });
  document.addEventListener("submit", (event) => {
    if (!event.target.matches("form.choices")) return;
    event.preventDefault();
    show("/?" + new URLSearchParams(new FormData(event.target)), true);
  });
  addEventListener("popstate", () => show(location.pathname + location.search, false));
})();
