// SPDX-License-Identifier: Apache-2.0

package plugin

// Point is an extension point, as a meter receives it: where a plugin works.
type Point uint8

// The points at which plugins work inside a cycle.
const (
	AtPreFilter Point = iota + 1
	AtFilter
	AtPostFilter
	AtPreScore
	AtScore
	AtReserve
	Points = iota + 1 // one more than the largest Point
)

// String is upstream's name of the point (pkg/scheduler/metrics: ExtensionPoints).
func (p Point) String() string {
	switch p {
	case AtPreFilter:
		return "PreFilter"
	case AtFilter:
		return "Filter"
	case AtPostFilter:
		return "PostFilter"
	case AtPreScore:
		return "PreScore"
	case AtScore:
		return "Score"
	case AtReserve:
		return "Reserve"
	}
	return ""
}
