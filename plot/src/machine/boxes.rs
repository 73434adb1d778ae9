//! Draws packages, nodes, caches and cores as boxes in boxes.

use super::drawing::{MachineDrawing, NamedBox};
use crate::canvas::{Area, BLUE, DrawError, GREEN, INK, ORANGE, WIDTH, ink};
use plotters::prelude::{Color as _, RGBColor, Rectangle};

const TITLE: i32 = 40;
const LINE: i32 = 18;
/// Distance between a box and the boxes inside it, in pixels.
const GAP: i32 = 8;
const CORE_WIDTH: i32 = 104;
/// Colours of the boxes of a package, a node and a cache.
const COLOURS: [RGBColor; 3] = [INK, GREEN, ORANGE];

pub(super) fn height(machine: &MachineDrawing) -> u32 {
    let width = i32::try_from(WIDTH).unwrap_or(0) - 4 * GAP;
    let packages: i32 = machine.packages.iter().map(|it| of(it, width) + GAP).sum();
    u32::try_from(TITLE + packages + 2 * GAP).unwrap_or(0)
}

pub(super) fn draw(area: &Area<'_>, machine: &MachineDrawing) -> Result<(), DrawError> {
    let title: String = machine.title.chars().take(110).collect();
    area.draw_text(&title, &ink(18), (2 * GAP, 12))?;
    let width = i32::try_from(WIDTH).unwrap_or(0) - 4 * GAP;
    let mut top = TITLE;
    for package in &machine.packages {
        one(area, package, (2 * GAP, top), width, 0)?;
        top += of(package, width) + GAP;
    }
    Ok(())
}

/// Returns the number of cores that fit in a row of `width` pixels, at least one.
fn in_a_row(width: i32) -> usize {
    usize::try_from((width - GAP) / (CORE_WIDTH + GAP)).unwrap_or(1).max(1)
}

fn core_height(group: &NamedBox) -> i32 {
    let lines = group.cores.iter().map(Vec::len).max().unwrap_or(0);
    i32::try_from(lines).unwrap_or(0) * LINE + GAP
}

/// Returns the height of the box of `group` in pixels if its width is `width` pixels.
fn of(group: &NamedBox, width: i32) -> i32 {
    let inner = width - 2 * GAP;
    let boxes: i32 = group.groups.iter().map(|it| of(it, inner) + GAP).sum();
    let rows = i32::try_from(group.cores.len().div_ceil(in_a_row(width))).unwrap_or(0);
    LINE + GAP + boxes + rows * (core_height(group) + GAP)
}

fn one(area: &Area<'_>, group: &NamedBox, at: (i32, i32), width: i32, level: usize) -> Result<(), DrawError> {
    let colour = COLOURS[level.min(COLOURS.len() - 1)];
    frame(area, at, (width, of(group, width)), colour, 0.06)?;
    area.draw_text(&group.name, &ink(15), (at.0 + GAP, at.1 + 5))?;
    let mut top = at.1 + LINE + GAP;
    for inner in &group.groups {
        one(area, inner, (at.0 + GAP, top), width - 2 * GAP, level + 1)?;
        top += of(inner, width - 2 * GAP) + GAP;
    }
    let height = core_height(group);
    for row in group.cores.chunks(in_a_row(width)) {
        let mut left = at.0 + GAP;
        for core in row {
            frame(area, (left, top), (CORE_WIDTH, height), BLUE, 0.12)?;
            let mut line = top + 4;
            for words in core {
                area.draw_text(words, &ink(13), (left + 5, line))?;
                line += LINE;
            }
            left += CORE_WIDTH + GAP;
        }
        top += height + GAP;
    }
    Ok(())
}

fn frame(
    area: &Area<'_>,
    at: (i32, i32),
    size: (i32, i32),
    colour: RGBColor,
    fill: f64,
) -> Result<(), DrawError> {
    let corners = [at, (at.0 + size.0, at.1 + size.1)];
    area.draw(&Rectangle::new(corners, colour.mix(fill).filled()))?;
    area.draw(&Rectangle::new(corners, colour.stroke_width(1)))
}
