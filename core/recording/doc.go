// SPDX-License-Identifier: Apache-2.0

// Package recording owns the text form of recordings: the events of an engine, with the effects of each, as lines.
//
// Each event is a line of its own, {"event":NAME,"data":{…}}, followed by one line {"effect":NAME,"data":{…}} for each
// effect of its Step. Events hold what the scheduler reads of nodes and pods: no environment values, no secrets, no
// annotations. The same events give the same effect lines, byte for byte.
//
// A recording may begin with the State of an engine: a line for each record, {"record":KIND,"data":{…}}, and then
// {"state":{…}}.
//
// It knows neither files nor clocks; package app/command/tape writes and reads the files.
package recording
