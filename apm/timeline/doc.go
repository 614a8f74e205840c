// SPDX-License-Identifier: Apache-2.0

// Package timeline owns spans on parallel tracks, and their forms for other tools: Perfetto's TrackEvent and the JSON
// of the OpenTelemetry protocol (OTLP). It knows neither traces nor schedulers; package apm makes timelines of bundles.
//
// Spans of a track nest: one that begins within another ends within it. Pack puts work that overlaps, such as
// goroutines of one lane, on as few tracks as possible without overlaps.
//
// Names in a timeline are those of functions and pods of a file from another machine. Both writers replace what is not
// printable, so that a name cannot reorder or hide text, and bound the length of names.
//
// Perfetto's format is written with package protowire. perfetto.proto has the messages and numbers that are used; a
// test decodes what is written with a descriptor built from that file. Rejected: Chrome's JSON, which Perfetto calls
// legacy and which repeats every name; generated code, for nine messages of which few fields are used.
package timeline
