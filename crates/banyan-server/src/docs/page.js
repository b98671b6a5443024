"use strict";
// Shows /openapi.json: operations by group, schemas that open, and a form for each call. Text is only ever set as text.

const element = (tag, properties, ...children) => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
};
const named = (tag, className, ...children) => element(tag, { className }, ...children);

let api;

const resolve = (schema) => {
  let found = schema;
  while (found && found.$ref) {
    const { $ref, ...beside } = found;
    found = { ...$ref.slice(2).split("/").reduce((at, part) => at[part], api), ...beside };
  }
  return found === true || !found ? {} : found;
};

const nameOf = (schema) => (schema && schema.$ref ? schema.$ref.split("/").pop() : "");

const kindOf = (schema) => {
  if (nameOf(schema)) return nameOf(schema);
  const options = schema.anyOf || schema.oneOf;
  if (options && !schema.type) return options.map(kindOf).join(" or ");
  const types = [].concat(schema.type || "anything").filter((type) => type !== "null");
  const kind = types.map((type) => (type === "array" ? `list of ${kindOf(schema.items || {})}` : type)).join(" or ");
  return [].concat(schema.type).includes("null") ? `${kind}, or null` : kind || "null";
};

// The inner fields of a schema, made when they are first looked at, because schemas refer to themselves.
const inside = (schema) => {
  const whole = resolve(schema);
  if (whole.properties) return () => fieldsOf(whole);
  const options = (whole.anyOf || whole.oneOf || []).filter((option) => option.type !== "null");
  if (options.length === 1) return inside(options[0]);
  if (options.length > 1) return () => choices(options);
  if (whole.items) return inside(whole.items);
  return null;
};

const choices = (options) => {
  const list = named("ul", "fields");
  for (const option of options) {
    const whole = resolve(option);
    const tag = Object.entries(whole.properties || {}).find(([, field]) => field.const !== undefined);
    const title = tag ? `${tag[0]}: ${tag[1].const}` : kindOf(option);
    list.append(element("li", {}, folded(title, option), described(whole)));
  }
  return list;
};

// Text with `names` in it.
const prose = (tag, text) => element(tag, {}, ...text.split("`").map((part, at) => (at % 2 ? element("code", { textContent: part }) : part)));

const described = (schema) => (schema.description ? prose("p", schema.description) : null);

const folded = (title, schema) => {
  const make = inside(schema);
  if (!make) return named("span", "kind", title);
  const details = element("details", {}, element("summary", { textContent: title }));
  details.addEventListener("toggle", () => details.open && details.children.length === 1 && details.append(make()));
  return details;
};

const field = (name, schema, must) => {
  const whole = resolve(schema);
  const words = whole.enum ? `one of ${whole.enum.join(", ")}` : kindOf(schema);
  return element("li", {}, named("span", "name", name), named("span", "kind", words),
    must ? named("span", "must", "required") : null, described(whole), inside(schema) ? folded("fields", schema) : null);
};

const fieldsOf = (schema) => {
  const list = named("ul", "fields");
  for (const [name, inner] of Object.entries(schema.properties || {})) {
    list.append(field(name, inner, (schema.required || []).includes(name)));
  }
  return list;
};

const parameterSchema = (parameter) => parameter.schema || parameter.content["application/json"].schema;

const shape = (schema) => {
  const make = inside(schema);
  return make ? make() : element("p", { textContent: kindOf(schema) });
};

// A request body to begin with.
const example = (schema, depth = 0) => {
  const whole = resolve(schema);
  if (whole.const !== undefined) return whole.const;
  if (whole.enum) return whole.enum[0];
  const options = (whole.anyOf || whole.oneOf || []).filter((option) => option.type !== "null");
  if (options.length && !whole.properties) return example(options[0], depth);
  const type = [].concat(whole.type)[0];
  if (type === "object" || whole.properties) {
    const must = new Set([...(whole.required || []), ...((whole.oneOf || [])[0]?.required || [])]);
    const entries = Object.entries(whole.properties || {}).filter(([name]) => must.has(name));
    return Object.fromEntries(entries.map(([name, inner]) => [name, example(inner, depth + 1)]));
  }
  if (type === "array") return depth < 5 && whole.items ? [example(whole.items, depth + 1)] : [];
  if (type === "integer" || type === "number") return Math.max(0, whole.minimum || 0);
  if (type === "boolean") return false;
  return type === "string" ? "" : null;
};

const tryOut = (path, verb, operation) => {
  const inputs = [];
  const form = element("form", {});
  for (const parameter of operation.parameters || []) {
    const input = element("input", { placeholder: kindOf(parameterSchema(parameter)), ariaLabel: parameter.name });
    inputs.push([parameter, input]);
    form.append(named("div", "row", element("label", { textContent: parameter.name }), input));
  }
  const content = operation.requestBody?.content["application/json"];
  const body = content && element("textarea", { value: JSON.stringify(example(content.schema), null, 2), ariaLabel: "Body" });
  if (body) form.append(body);
  const result = element("pre", { hidden: true, tabIndex: 0 });
  const note = named("span", "kind");
  form.append(named("div", "send", element("button", { textContent: "Send" }), note), result);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const [url, headers] = addressOf(path, inputs);
    note.textContent = `${verb.toUpperCase()} ${url}`;
    try {
      const answer = await fetch(url, { method: verb.toUpperCase(), headers: { ...headers, ...(body ? { "content-type": "application/json" } : {}) }, body: body?.value });
      await show(answer, result);
    } catch (error) {
      result.hidden = false;
      result.textContent = String(error);
    }
  });
  return form;
};

const addressOf = (path, inputs) => {
  const headers = {};
  const query = new URLSearchParams();
  const key = document.getElementById("key").value;
  if (key) headers.authorization = `Bearer ${key}`;
  let url = path;
  for (const [parameter, input] of inputs) {
    if (parameter.in === "path") url = url.replace(`{${parameter.name}}`, encodeURIComponent(input.value));
    else if (input.value && parameter.in === "query") query.set(parameter.name, input.value);
    else if (input.value) headers[parameter.name] = input.value;
  }
  return [query.size ? `${url}?${query}` : url, headers];
};

const show = async (answer, result) => {
  result.hidden = false;
  const head = `${answer.status} ${answer.statusText}\n${answer.headers.get("content-type") || ""}\n\n`;
  const kind = answer.headers.get("content-type") || "";
  if (kind.includes("json")) {
    const text = await answer.text();
    result.textContent = head + pretty(text);
  } else if (kind.startsWith("text/event-stream")) {
    result.textContent = head;
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      result.textContent += part.value;
      if (result.textContent.length > 50000) return reader.cancel();
    }
  } else if (kind.startsWith("text/")) {
    result.textContent = head + (await answer.text());
  } else {
    result.textContent = `${head}${(await answer.blob()).size} bytes`;
  }
};

const pretty = (text) => {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
};

const details = (path, verb, operation) => {
  const box = element("div", {});
  if (operation.parameters?.length) {
    const list = named("ul", "fields");
    for (const parameter of operation.parameters) {
      const schema = { ...parameterSchema(parameter) };
      const item = field(parameter.name, schema, parameter.required);
      item.append(prose("p", `${parameter.description} (${parameter.in})`));
      list.append(item);
    }
    box.append(element("h3", { textContent: "Parameters" }), list);
  }
  for (const [kind, content] of Object.entries(operation.requestBody?.content || {})) {
    box.append(element("h3", { textContent: `Body, ${kind}` }), shape(content.schema || {}));
  }
  box.append(element("h3", { textContent: "Answers" }));
  const answers = named("ul", "fields");
  for (const [status, response] of Object.entries(operation.responses)) {
    const item = element("li", {}, named("span", "status", status), named("span", "kind", response.description));
    for (const [kind, content] of Object.entries(response.content || {})) {
      item.append(content.schema ? folded(`${kind}: ${kindOf(content.schema)}`, content.schema) : named("span", "kind", kind));
    }
    answers.append(item);
  }
  box.append(answers, element("h3", { textContent: "Try it" }), tryOut(path, verb, operation));
  return box;
};

const render = () => {
  document.getElementById("version").textContent = api.info.version;
  const [main, contents] = [document.getElementById("main"), document.getElementById("contents")];
  main.replaceChildren(element("p", { textContent: api.info.description }));
  for (const tag of api.tags) {
    const section = element("section", {}, element("h2", { textContent: tag.name }), prose("p", tag.description));
    contents.append(element("h2", { textContent: tag.name }));
    for (const [path, methods] of Object.entries(api.paths)) {
      for (const [verb, operation] of Object.entries(methods)) {
        if (!operation.tags.includes(tag.name)) continue;
        const box = named("details", "operation", element("summary", {}, named("span", `verb ${verb}`, verb),
          named("code", "path", path), Object.assign(prose("span", operation.summary), { className: "about" })));
        box.id = operation.operationId;
        box.dataset.words = `${verb} ${path} ${operation.summary}`.toLowerCase();
        box.addEventListener("toggle", () => box.open && box.children.length === 1 && box.append(details(path, verb, operation)));
        section.append(box);
        const short = path.replace("/v1/call/", "").replace("/v1", "").replace("_id}", "}").replace("{session}", "{id}");
        const parts = short.split("/").flatMap((part, at) => (at ? [element("wbr", {}), `/${part}`] : [part]));
        contents.append(element("a", { href: `#${operation.operationId}` }, named("span", `verb ${verb}`, verb), element("span", {}, ...parts)));
      }
    }
    main.append(section);
  }
};

const openTarget = () => {
  const target = document.getElementById(location.hash.slice(1));
  if (target) {
    target.open = true;
    target.scrollIntoView();
  }
};

document.getElementById("search").addEventListener("input", (event) => {
  const words = event.target.value.toLowerCase();
  for (const box of document.querySelectorAll(".operation")) box.classList.toggle("hidden", !box.dataset.words.includes(words));
  for (const section of document.querySelectorAll("section")) section.classList.toggle("hidden", !section.querySelector(".operation:not(.hidden)"));
});
window.addEventListener("hashchange", openTarget);

fetch("/openapi.json")
  .then((answer) => answer.json())
  .then((found) => {
    api = found;
    render();
    openTarget();
  })
  .catch((error) => {
    document.getElementById("main").textContent = `The document could not be loaded: ${error}`;
  });
