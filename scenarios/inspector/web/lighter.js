/**
 * What makes figures of Bokeh quick to draw again.
 *
 * Bokeh prepares at each painting for much that charts here never do: data that is selected, hovered or muted, ranges
 * that follow the data, colours from style sheets, boxes around axes that other elements can be placed at. A step of the
 * page draws half a dozen figures, so all of that is left out. Methods are replaced on the views of a figure only, and
 * only where they are as expected: with another version of Bokeh a figure is drawn as usual.
 */

/** Width of the gap between boxes, px: half of it at each side. */
const GAP = 0.75;

/**
 * @param {Object} view of a figure
 * @param {function(): number} below height below the frame, px
 */
export function lighten(view, below) {
  noStyleSheets(view);
  for (const part of view.renderer_views?.values?.() ?? []) {
    if (part.update_position) part.update_position = () => {};
    if (part.compute_labels && part._draw_major_labels) lightenAxis(part, below);
    else if (part.glyph && part.map_data && part.set_data) lightenGlyph(part);
  }
  const pen = view.canvas_view?.primary?.ctx;
  if (pen) pen.strokeText = () => {}; // outlines of letters, which are transparent
}

/** Ask the style sheet for nothing: all colours, widths and fonts of charts are set as properties. */
function noStyleSheets(view) {
  Object.defineProperty(view, "base_font_size", { value: 13 });
  const visuals = [...(view.visuals ?? [])].find((one) => typeof one._get_css_value === "function");
  for (let place = visuals; place; place = Object.getPrototypeOf(place)) {
    if (Object.hasOwn(place, "_get_css_value")) place._get_css_value = () => "";
  }
}

/** Measure words only where the room for an axis depends on them: not below the frame. */
function lightenAxis(axis, below) {
  if (axis.dimension === 0) axis.get_size = () => ({ width: 0, height: axis.model.visible ? below() : 0 });
  axis._paint = (pen) => {
    const coordinates = axis.tick_coords;
    axis._draw_rule(pen);
    axis._draw_major_ticks(pen, null, coordinates);
    axis._draw_major_labels(pen, { tick: axis._tick_extent() }, coordinates);
  };
}

/** Keep up the one glyph that is shown, without an index for finding places. */
function lightenGlyph(part) {
  const { glyph } = part;
  const boxes = glyph.model.type === "Quad";
  glyph.index_data = () => {};
  part.set_visuals = async () => {
    glyph.set_visuals(part.model.data_source, part.all_indices);
    if (boxes) glyph.groups = byColour(glyph);
    glyph.after_visuals();
    await glyph.after_lazy_visuals();
  };
  part.set_data = async (changed) => {
    const { count } = part.model.view.indices;
    part.all_indices = { count, size: count, select: (values) => values }; // no filters here: nothing to copy
    await glyph.set_data(part.model.data_source, part.all_indices, changed);
    await part.set_visuals();
  };
  part._paint = (pen) => {
    glyph.map_data();
    if (boxes) paintBoxes(pen, glyph, part.plot_view.frame.bbox);
    else glyph.paint(pen, part.model.view.indices_array);
  };
}

/** The boxes one colour after the other: changing the colour takes longer than a box. */
function byColour({ fill_color: colours, fill_alpha: alphas, data_size: size }) {
  const groups = new Map();
  for (let place = 0; place < size; place++) {
    const key = 1000 * colours.get(place) + Math.round(999 * alphas.get(place));
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(place);
  }
  return [...groups.values()];
}

/** Paint boxes; those that only have a thin line around them are filled with a gap instead, which is much quicker. */
function paintBoxes(pen, glyph, { left, right, top, bottom }) {
  const { sleft, sright, stop, sbottom, line_width: widths } = glyph;
  const { fill, line } = glyph.visuals;
  const thin = fill.doit && widths.length > 0 && widths.get(0) <= GAP;
  const gap = thin && line.doit ? GAP / 2 : 0;
  for (const places of glyph.groups ?? byColour(glyph)) {
    if (thin) fill.set_vectorize(pen, places[0]);
    for (const place of places) {
      const [from, to] = [Math.max(sleft[place], left - 2), Math.min(sright[place], right + 2)];
      const [high, low] = [Math.max(stop[place], top - 2), Math.min(sbottom[place], bottom + 2)];
      if (!(to >= left && from <= right && low >= top && high <= bottom)) continue;
      if (thin) {
        const [wide, tall] = [Math.max(to - from - 2 * gap, gap), Math.max(low - high - 2 * gap, gap)];
        pen.fillRect(from + gap, high + gap, wide, tall);
      } else {
        pen.beginPath();
        pen.rect(from, high, to - from, low - high);
        fill.apply(pen, place);
        line.apply(pen, place);
      }
    }
  }
}
