// SPDX-License-Identifier: Apache-2.0

// Package scenario owns scenario files: what a simulation has in it, when what happens, and what must hold at its end.
// A file is read strictly, and every problem is reported with its line and column. docs/simulator.md describes the
// format. The package also reads the published traces that can be added to a scenario.
package scenario
