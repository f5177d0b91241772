/* Pictures whose boxes open where they stand: what is beside and below them moves away. Positions are attributes, so that they add up. */
const SVG = "http://www.w3.org/2000/svg";
const MARGIN = 16, PADDING = 8;     // as in irtool/drawing
const ARC = 12, SIGN = 16;

function parsedPicture(text) {
  return document.importNode(new DOMParser().parseFromString(text, "image/svg+xml").documentElement, true);
}
function drawShape(parent, name, kind, attributes) {
  const element = document.createElementNS(SVG, name);
  if (kind) element.setAttribute("class", kind);
  for (const each in attributes) element.setAttribute(each, attributes[each]);
  parent.append(element);
  return element;
}
function numberOf(element, name) { return parseFloat(element.getAttribute(name)); }
function frameOf(box) {
  const frame = box.querySelector(":scope > rect");
  return { x: numberOf(frame, "x"), y: numberOf(frame, "y"), width: numberOf(frame, "width"), height: numberOf(frame, "height") };
}
function widen(box, dx, dy) {
  const frame = box.querySelector(":scope > rect"), { width, height } = frameOf(box);
  frame.setAttribute("width", width + dx);
  frame.setAttribute("height", height + dy);
}
function pointsOf(edge) {
  const numbers = edge.dataset.points.split(" ").map(Number), points = [];
  for (let i = 0; i < numbers.length; i += 2) points.push([numbers[i], numbers[i + 1]]);
  return points;
}
function setPoints(edge, points) { edge.dataset.points = points.flat().join(" "); }
function shift(element, dx, dy) {       // with all that is in it
  if (!dx && !dy) return;
  for (const each of [element, ...element.querySelectorAll("rect, text, path")]) {
    if (each.dataset.points) setPoints(each, pointsOf(each).map(([x, y]) => [x + dx, y + dy]));
    if (!each.hasAttribute("x")) continue;
    each.setAttribute("x", numberOf(each, "x") + dx);
    each.setAttribute("y", numberOf(each, "y") + dy);
  }
}

// Makes room in `parent`, for a box in it that had the frame `was` and has become larger by dx and dy. Whole boxes move, by their middles, so
// that they keep their order and never come nearer.
function makeRoom(parent, grown, was, dx, dy) {
  const across = (x) => dx * Math.min(1, Math.max(0, (x - was.x) / was.width)), down = (y) => y > was.y + 1 ? dy : 0;
  const boxes = new Map(), places = new Map();
  const edges = [...parent.children].filter((each) => each.dataset.ends);
  for (const each of parent.children) if (each.dataset.keys) boxes.set(each.dataset.keys.split(",")[0], each);
  for (const edge of edges) {             // where at the box it ends
    const box = boxes.get(edge.dataset.ends.split(",")[1]), frame = box === grown ? was : frameOf(box);
    places.set(edge, (pointsOf(edge).at(-1)[0] - frame.x) / frame.width);
  }
  for (const each of parent.children) {
    if (each.dataset.keys && each !== grown) {
      if (each.contains(grown)) {
        widen(each, dx, dy);
        makeRoom(each, grown, was, dx, dy);
      } else {
        const frame = frameOf(each);
        shift(each, across(frame.x + frame.width / 2), down(frame.y));
      }
    } else if (each.tagName === "text") shift(each, across(numberOf(each, "x")), down(numberOf(each, "y")));
  }
  for (const edge of edges) {
    const [start, end] = edge.dataset.ends.split(",").map((key) => frameOf(boxes.get(key)));
    const points = pointsOf(edge).map(([x, y]) => [x + across(x), y + down(y)]);
    points[0] = [start.x + start.width / 2, start.y + start.height];
    points[1][0] = points[0][0];
    points[points.length - 1] = [end.x + end.width * places.get(edge), end.y];
    setPoints(edge, points);
  }
}

// Opens the boxes of a picture whose names are in `opened`. pictureOf: the text of the picture of a name.
function openBoxes(svg, opened, pictureOf) {
  for (const box of svg.querySelectorAll(".box[data-opens]")) {
    if (!opened.has(box.dataset.opens)) continue;
    const inner = parsedPicture(pictureOf(box.dataset.opens)), was = frameOf(box);
    openBoxes(inner, opened, pictureOf);
    const content = numberOf(inner, "width") - 2 * MARGIN, dx = Math.max(0, content + 2 * PADDING - was.width);
    const dy = numberOf(inner, "height") - 2 * MARGIN + PADDING;
    for (const part of [...inner.children]) {
      if (part.tagName === "text") continue;      // its title, which the box has too
      shift(part, was.x + (was.width + dx - content) / 2 - MARGIN, was.y + was.height - MARGIN);
      box.append(part);
    }
    widen(box, dx, dy);
    box.classList.add("open");
    makeRoom(svg, box, was, dx, dy);
  }
  const frames = [...svg.children].filter((each) => each.dataset.keys).map(frameOf);
  svg.setAttribute("width", Math.max(numberOf(svg, "width"), ...frames.map((frame) => frame.x + frame.width + MARGIN)));
  svg.setAttribute("height", Math.max(numberOf(svg, "height"), ...frames.map((frame) => frame.y + frame.height + MARGIN)));
}

// Draws the edges between boxes, where these are now, the captures of a gradient pair, and the signs of boxes that open.
function drawEdges(svg, captures, boxOf) {
  const round = (number) => number.toFixed(1);
  for (const edge of svg.querySelectorAll(".edge")) {
    const points = pointsOf(edge);
    edge.setAttribute("d", points.map(([x, y], i) => {
      if (i % 2 || !i) return (i ? "L" : "M") + round(x) + " " + round(y);
      const [x0, y0] = points[i - 1], middle = (y0 + y) / 2;
      return "C" + [x0, middle, x, middle, x, y].map(round).join(" ");
    }).join(""));
  }
  for (const [value, taken] of captures) {
    const start = boxOf(value), end = boxOf(taken);
    if (!start || !end) continue;
    const a = frameOf(start), b = frameOf(end);
    let x0 = a.x + a.width, y0 = a.y + a.height / 2, x1 = b.x, y1 = b.y + b.height / 2, bend = Math.max(30, (x1 - x0) / 2), rise = 0;
    if (y0 === y1) [x0, y0, x1, y1, bend, rise] = [x0 - a.width / 2, a.y, x1 + b.width / 2, b.y, 0, ARC];     // over the boxes between them
    const shape = "M" + [x0, y0].map(round).join(" ") + "C" + [x0 + bend, y0 - rise, x1 - bend, y1 - rise, x1, y1].map(round).join(" ");
    drawShape(svg, "path", "edge capture", { d: shape, "data-values": value });
  }
  for (const box of svg.querySelectorAll("[data-opens]")) {
    const { x, y, width } = frameOf(box), left = x + width - SIGN, isOpen = box.classList.contains("open");
    drawShape(box, "text", "sign", { x: left + 4, y: y + 13 }).textContent = isOpen ? "\u2212" : "+";
    const place = drawShape(box, "path", "sign", { d: "M" + left + " " + y + "h" + SIGN + "v" + SIGN + "h-" + SIGN + "z" });
    drawShape(place, "title", "", {}).textContent = isOpen ? "Close (o)" : "Open (o)";
  }
}

