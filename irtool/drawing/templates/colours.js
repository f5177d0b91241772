"use strict";
/* Elements, and the colours of texts: for the page of a graph, and for the playground. Texts become text nodes, never markup. */
const LANGUAGES = {     // groups in the order of KINDS
  ir: /(#.*$)|("(?:[^"\\\n]|\\.)*")|(%(?:[^\s,():=;%[\]{}"#]|::)+)|([A-Za-z_^]\w*::\w+|\^\w+)|(: [A-Z]\w*|: (?:int|float|bool|str|complex|number|None)\b)/gm,
  python: /(#.*$)|("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|(\bself\b)|(\b(?:and|as|assert|break|class|continue|def|del|elif|else|except|finally|for|from|if|import|in|is|lambda|not|or|pass|raise|return|while|with|yield)\b)|(\b(?:Tensor|[Ii]nt|[Ff]loat|[Bb]ool|[Ss]tr|List|Dict|Tuple|Optional|None|True|False)\b)/gm,
};
const KINDS = ["note", "string", "value", "kind", "type"];

function make(name, kind, text) {
  const element = document.createElement(name);
  if (kind) element.className = kind;
  if (text !== undefined) element.textContent = text;
  return element;
}

// Appends a text to an element, with a span for each token; returns the spans.
function paint(element, text, language) {
  const spans = [];
  let end = 0;
  for (const token of text.matchAll(language)) {
    if (token.index > end) element.append(text.slice(end, token.index));
    const span = make("span", KINDS[token.slice(1).findIndex((each) => each !== undefined)], token[0]);
    spans.push(span);
    element.append(span);
    end = token.index + token[0].length;
  }
  element.append(text.slice(end));
  return spans;
}
