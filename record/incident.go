// SPDX-License-Identifier: Apache-2.0

package record

import "time"

// Incident is one bundle of the flight recorder, or why there is none.
type Incident struct {
	// ID names the bundle in /debug/kumiki/incidents/ID.
	ID string `json:"id"`
	// Cause is one of a closed list (docs/incidents.md), Text says it in words.
	Cause string    `json:"cause"`
	Text  string    `json:"text"`
	At    time.Time `json:"at"`
	// Took is the duration that exceeded its limit, if the cause has one.
	Took time.Duration `json:"took,omitempty"`
	// Detail names the object that it is about, or a count.
	Detail string `json:"detail,omitempty"`
	// Events counts the events in the bundle, after the Before events of the state with which it begins.
	Events int `json:"events"`
	Before int `json:"before"`
	// InHand is the event that was being handled when the bundle was written, not among Events; empty for none.
	InHand string `json:"inHand,omitempty"`
	// Wrote is how long it took to write the bundle, and Size its size in bytes.
	Wrote time.Duration `json:"wrote,omitempty"`
	Size  int64         `json:"size,omitempty"`
	// File is the path of the bundle on the machine of the scheduler; empty for one in memory.
	File string `json:"file,omitempty"`
	// Anonymous is set in a bundle with pseudonyms in place of names.
	Anonymous bool `json:"anonymous,omitempty"`
	// Error is why the bundle could not be written or kept; empty if it can be read.
	Error string `json:"error,omitempty"`
}

// Incidents is the list of the bundles of a scheduler, the oldest first.
type Incidents struct {
	Incidents []Incident `json:"incidents"`
}

// IncidentReplay is the result of replaying a bundle.
type IncidentReplay struct {
	Incident Incident `json:"incident"`
	// Events were replayed, Decisions of them made; Different have other effects than at the time.
	Events    int `json:"events"`
	Decisions int `json:"decisions"`
	Different int `json:"different"`
	// First is the first difference, nil for none.
	First *IncidentDifference `json:"first,omitempty"`
}

// IncidentDifference is an event whose effects are others than at the time.
type IncidentDifference struct {
	// Event counts the events of the engine, At is the time of the iteration.
	Event int  `json:"event"`
	At    Time `json:"at"`
	// Line is the event, and Now its effects in the replay, as in a recording. Of those before, only a digest is known.
	Line string   `json:"line"`
	Now  []string `json:"now"`
}
