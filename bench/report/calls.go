// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Calls counts requests to the API server: "POST pods/binding 201" -> how many.
type Calls map[string]int64

// callsDiffer returns, sorted, which writes per pod one scheduler makes otherwise than another: those that were done,
// by at least a twentieth of the other's and of one for each pod. What was refused is tried again and counts when it
// is done.
func callsDiffer(of, than map[string]float64) []string {
	var out []string
	kinds := maps.Clone(of)
	maps.Copy(kinds, than)
	for _, what := range slices.Sorted(maps.Keys(kinds)) {
		done := strings.HasSuffix(what, " 200") || strings.HasSuffix(what, " 201")
		if by := math.Abs(of[what] - than[what]); done && by > callsTolerated*math.Max(1, than[what]) {
			kind, _, _ := strings.Cut(what, " 20")
			out = append(out, fmt.Sprintf("%.2f %s instead of %.2f", of[what], kind, than[what]))
		}
	}
	return out
}

// callsTolerated is the share by which writes may differ without a remark: events that cover many pods, or a second
// more.
const callsTolerated = 0.05

// Since leaves what came on top, without lists and watches, which are this program's as well.
func (c Calls) Since(before Calls) Calls {
	out := Calls{}
	for what, n := range c {
		if more := n - before[what]; more > 0 && !strings.HasPrefix(what, "LIST ") && !strings.HasPrefix(what, "WATCH ") {
			out[what] = more
		}
	}
	return out
}
