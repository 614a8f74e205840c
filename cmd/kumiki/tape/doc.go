// SPDX-License-Identifier: Apache-2.0

// Package tape owns recordings as files: a first line that says which configuration ran, then the lines of engine's
// tape. A recording begins with the engine, because what an event does depends on all events before it; so a file
// that has reached its bound ends there, and is not rotated.
package tape
