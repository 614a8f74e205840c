// SPDX-License-Identifier: Apache-2.0

// Package message owns the language of the engine: the events that go into it and the effects that come out, as plain
// data, with their JSON form in recordings.
//
// It knows neither the engine nor those who carry effects out. Package engine has these types under its own name, for
// its callers.
package message
