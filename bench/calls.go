// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/client-go/kubernetes"
)

// Calls counts requests to the API server: "POST pods/binding 201" -> how many.
type Calls map[string]int64

// label finds one label of a metric.
var label = regexp.MustCompile(`([a-z_]+)="([^"]*)"`)

// writtenBySchedulers: resource -> its calls count. The API server also talks to itself, about others.
var writtenBySchedulers = map[string]bool{"pods": true, "events": true, "resourceclaims": true, "podgroups": true,
	"persistentvolumes": true, "persistentvolumeclaims": true}

// parseCalls reads the requests that ended out of the API server's /metrics, about what schedulers write.
func parseCalls(text string) (Calls, error) {
	calls := Calls{}
	for line := range strings.Lines(text) {
		rest, ours := strings.CutPrefix(line, "apiserver_request_total{")
		if !ours {
			continue
		}
		labels, value, found := strings.Cut(rest, "} ")
		if !found {
			return nil, fmt.Errorf("metric without a value: %q", line)
		}
		of := map[string]string{} // label -> value
		for _, m := range label.FindAllStringSubmatch(labels, -1) {
			of[m[1]] = m[2]
		}
		if !writtenBySchedulers[of["resource"]] {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil {
			return nil, fmt.Errorf("metric %q: %w", line, err)
		}
		what := of["resource"]
		if of["subresource"] != "" {
			what += "/" + of["subresource"]
		}
		calls[of["verb"]+" "+what+" "+of["code"]] += int64(n)
	}
	return calls, nil
}

// callsDiffer tells, sorted, which writes per pod one scheduler makes otherwise than another: those that were done, by at least
// a twentieth of the other's and of one for each pod. What was refused is tried again and counts when it is done.
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

// callsTolerated is by how much writes may differ without a word: events that are told once for many pods, or of a second more.
const callsTolerated = 0.05

// callsNow asks the API server what it was asked so far.
func callsNow(ctx context.Context, client *kubernetes.Clientset) (Calls, error) {
	text, err := client.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("metrics of the API server: %w", err)
	}
	return parseCalls(string(text))
}

// since leaves what came on top, without lists and watches, which are this program's as well.
func (c Calls) since(before Calls) Calls {
	out := Calls{}
	for what, n := range c {
		if more := n - before[what]; more > 0 && !strings.HasPrefix(what, "LIST ") && !strings.HasPrefix(what, "WATCH ") {
			out[what] = more
		}
	}
	return out
}
