// SPDX-License-Identifier: Apache-2.0

// Package tape owns recordings as files: a first line with the configuration, then the lines of core/recording. A
// recording begins with the start of the engine, because the effects of an event depend on all events before it; so a
// file that has reached its size limit ends there, and is not rotated.
package tape
