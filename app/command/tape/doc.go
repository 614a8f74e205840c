// SPDX-License-Identifier: Apache-2.0

// Package tape owns recordings as files: a first line with the configuration, then the lines of core/recording. The
// effects of an event depend on all events before it, so a recording begins with the start of an engine, or with its
// State. A file that has reached its size limit ends there, or the next segment begins, with a State.
//
// Rejected: encoding a State in the loop, which would stop it for a second at 150,000 pods. Rejected: segments that
// begin without a State and need all before them, since old segments are removed.
package tape
