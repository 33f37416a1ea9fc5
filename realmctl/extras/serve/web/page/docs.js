import { element } from "./dom.js";

const main = document.getElementById("api");

/** The name of a schema, or its type. */
function typeOf(schema) {
  if (!schema) return "";
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(" or ");
  if (schema.type === "array") return `list of ${typeOf(schema.items)}`;
  if (schema.additionalProperties) return `object of ${typeOf(schema.additionalProperties)}`;
  return schema.type ?? "any";
}

function link(schema) {
  const name = typeOf(schema);
  return schema?.$ref ? element("a", { href: `#${name}` }, name) : name;
}

function rows(header, lines) {
  return element("div", { class: "scroll" }, element("table", {},
    element("thead", {}, element("tr", {}, ...header.map((cell) => element("th", { scope: "col" }, cell)))),
    element("tbody", {}, ...lines.map((line) => element("tr", {}, ...line.map((cell) => element("td", {}, cell ?? "")))))));
}

function limits(schema) {
  const shown = { minimum: "at least", maximum: "at most", minLength: "characters at least", maxLength: "characters at most",
    minItems: "items at least", maxItems: "items at most", default: "default" };
  return Object.entries(shown).filter(([key]) => schema[key] != null).map(([key, text]) => `${text} ${schema[key]}`).join(", ");
}

function operation(path, method, about) {
  const body = about.requestBody?.content["application/json"].schema;
  const parameters = (about.parameters ?? []).map((one) => [one.name, one.in, typeOf(one.schema), one.description]);
  const replies = Object.entries(about.responses).map(([code, reply]) =>
    [code, link(reply.content?.["application/json"]?.schema), reply.description]);
  return element("section", { class: "card" },
    element("h2", {}, element("code", {}, `${method.toUpperCase()} ${path}`)),
    element("p", {}, about.description ?? ""),
    about.security ? element("p", {}, "Needs the token: ", element("code", {}, "Authorization: Bearer TOKEN")) : null,
    body ? element("p", {}, "Body: ", link(body)) : null,
    parameters.length ? rows(["parameter", "in", "type", ""], parameters) : null,
    rows(["status", "reply", ""], replies));
}

function schemaView(name, schema) {
  const fields = Object.entries(schema.properties ?? {}).map(([field, one]) =>
    [field, link(one), schema.required?.includes(field) ? "required" : "", limits(one)]);
  return element("section", { class: "card", id: name }, element("h3", {}, name), element("p", {}, schema.description ?? ""),
    rows(["field", "type", "", "limits"], fields));
}

try {
  const api = await (await fetch("openapi.json")).json();
  const operations = Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, about]) => operation(path, method, about)));
  main.replaceChildren(element("p", { class: "soft" }, api.info.description), ...operations, element("h2", {}, "Objects"),
    ...Object.entries(api.components.schemas).map(([name, schema]) => schemaView(name, schema)));
} catch {
  main.replaceChildren(element("p", { class: "error" }, "The OpenAPI document cannot be read. Is realmctl serve still running?"));
}
