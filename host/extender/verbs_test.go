// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	configv1 "k8s.io/kube-scheduler/config/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/record"
)

type hosts = extenderv1.HostPriorityList

func ranks(s *httptest.Server, weight int64) configv1.Extender {
	return configv1.Extender{URLPrefix: s.URL, PrioritizeVerb: "prioritize", Weight: weight, NodeCacheCapable: true}
}

// What an extender's scores add to the totals. Faults: no scale; no weight; a score by position instead of by name; a
// score that wraps.
func TestScoreScalesAndWeighs(t *testing.T) {
	for _, scenario := range []struct {
		name   string
		weight int64
		answer any
		want   []int64 // nil when the extender gives no score
	}{
		{"up to 10 becomes up to 100", 1, hosts{{Host: "a", Score: 10}, {Host: "b", Score: 3}}, []int64{100, 30}},
		{"times the weight", 7, hosts{{Host: "a", Score: 1}, {Host: "b", Score: 0}}, []int64{70, 0}},
		{"in another order", 1, hosts{{Host: "b", Score: 2}, {Host: "a", Score: 1}}, []int64{10, 20}},
		{"a node left out", 1, hosts{{Host: "b", Score: 2}}, []int64{0, 20}},
		{"a node twice", 1, hosts{{Host: "b", Score: 2}, {Host: "b", Score: 3}}, []int64{0, 50}},
		{"a node that was not in the request", 1, hosts{{Host: "z", Score: 9}, {Host: "a", Score: 1}}, []int64{10, 0}},
		{"scores out of range", 1, hosts{{Host: "a", Score: 11}, {Host: "b", Score: -1}}, []int64{110, -10}},
		{"scores without measure", math.MaxInt64, hosts{{Host: "a", Score: math.MaxInt64},
			{Host: "b", Score: math.MinInt64}, {Host: "a", Score: 5}}, []int64{mostAdded, -mostAdded}},
		{"no scores", 1, hosts{}, []int64{0, 0}},
		{"null", 1, "null", []int64{0, 0}},
		{"a score that is no number", 1, `[{"Host": "a", "Score": "high"}]`, nil},
		{"half a score", 1, `[{"Host": "a", "Score": 1.5}]`, nil},
		{"a code that is not 200", 1, http.StatusInternalServerError, nil},
		{"no JSON", 1, "busy", nil},
	} {
		t.Run(scenario.name, func(t *testing.T) {
			f := newFixture(t)
			config := ranks(f.server(func(string, []byte) any { return scenario.answer }), scenario.weight)
			scores := f.with(config).Score(f.pod("p"), []string{"a", "b"})
			if scenario.want == nil {
				if len(scores) != 0 || len(f.ignored) != 1 || f.ignored[0].Verb != "prioritize" {
					t.Errorf("scores %v, ignored %v", scores, f.ignored)
				}
			} else if len(scores) != 1 || scores[0].By != config.URLPrefix ||
				!slices.Equal(scores[0].Added, scenario.want) {
				t.Errorf("scores %v, want %v", scores, scenario.want)
			}
		})
	}
}

// Each extender that ranks adds its own; one that fails takes nothing from the others.
func TestScoreOfSeveral(t *testing.T) {
	f := newFixture(t)
	good := f.server(func(string, []byte) any { return hosts{{Host: "a", Score: 1}} })
	bad := f.server(func(string, []byte) any { return http.StatusTeapot })
	managed := ranks(good, 5)
	managed.ManagedResources = []configv1.ExtenderManagedResource{{Name: "example.com/a"}}
	x := f.with(ranks(good, 1), ranks(bad, 1), configv1.Extender{URLPrefix: good.URL, FilterVerb: "filter",
		Weight: 9}, managed, ranks(good, 2))
	scores := x.Score(f.pod("p"), []string{"a"})
	if len(scores) != 2 || scores[0].Added[0] != 10 || scores[1].Added[0] != 20 {
		t.Errorf("scores %v", scores)
	}
	if scores = x.Score(f.pod("q", "example.com/a"), []string{"a"}); len(scores) != 3 || scores[1].Added[0] != 50 {
		t.Errorf("with a managed resource: scores %v", scores)
	}
}

// Multiplication saturates, and is exact where int64 can hold the product.
func TestTimes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64().Draw(t, "a"), rapid.Int64().Draw(t, "b")
		got, exact := times(a, b), float64(a)*float64(b)
		switch {
		case a == 0 || a*b/a == b && !(a == -1 && b == math.MinInt64):
			if got != a*b {
				t.Fatalf("%d * %d = %d", a, b, got)
			}
		case exact > 0 && got != math.MaxInt64, exact < 0 && got != math.MinInt64:
			t.Fatalf("%d * %d = %d, want an end of int64", a, b, got)
		}
	})
}

var bindRef = record.PodRef{Namespace: "ns", Name: "p", UID: "uid-p"}

// Bind asks the one extender that binds. Faults: an error in the answer that is not read; one that may be ignored and
// fails the bind.
func TestBind(t *testing.T) {
	for _, scenario := range []struct {
		name      string
		ignorable bool
		answer    any
		want      string
	}{
		{"bound", false, extenderv1.ExtenderBindingResult{}, ""},
		{"refused", false, extenderv1.ExtenderBindingResult{Error: "no such pod"}, "no such pod"},
		{"a code that is not 200", false, http.StatusConflict, "failed bind with extender at URL URL/bind, code 409"},
		{"no JSON", false, "done", "invalid character 'd' looking for beginning of value"},
		{"refused, and may be ignored", true, extenderv1.ExtenderBindingResult{Error: "no such pod"},
			ErrNotBound.Error()},
		{"bound, and may be ignored", true, extenderv1.ExtenderBindingResult{}, ""},
	} {
		t.Run(scenario.name, func(t *testing.T) {
			f := newFixture(t)
			s := f.server(func(verb string, body []byte) any {
				var args extenderv1.ExtenderBindingArgs
				if err := json.Unmarshal(body, &args); err != nil {
					t.Error(err)
				}
				if want := (extenderv1.ExtenderBindingArgs{PodName: "p", PodNamespace: "ns", PodUID: "uid-p",
					Node: "a"}); verb != "bind" || args != want {
					t.Errorf("%s with %+v", verb, args)
				}
				return scenario.answer
			})
			x := f.with(filters(s), configv1.Extender{URLPrefix: s.URL, BindVerb: "bind", Ignorable: scenario.ignorable})
			got := ""
			if err := x.Bind(context.Background(), bindRef, "a"); err != nil {
				got = err.Error()
				if errors.Is(err, ErrNotBound) != scenario.ignorable {
					t.Errorf("error %v", err)
				}
			}
			if want := strings.ReplaceAll(scenario.want, "URL/", s.URL+"/"); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	f := newFixture(t)
	if err := f.with(filters(f.server(nil))).Bind(context.Background(), bindRef, "a"); err == nil {
		t.Errorf("bound without an extender that binds")
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	config := configv1.Extender{URLPrefix: f.server(func(string, []byte) any { return result{} }).URL, BindVerb: "bind"}
	if err := f.with(config).Bind(ctx, bindRef, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("a bind whose context has ended: %v", err)
	}
}

// Preempt lets extenders choose among the candidates, and other pods of their nodes. Faults: a victim that is not on
// the node; a node without victims; the second extender asked about what the first left out.
func TestPreempt(t *testing.T) {
	ref := func(name string) record.PodRef { return record.PodRef{Namespace: "ns", Name: name, UID: "uid-" + name} }
	meta := func(uids ...string) *extenderv1.MetaVictims {
		m := &extenderv1.MetaVictims{NumPDBViolations: 1}
		for _, uid := range uids {
			m.Pods = append(m.Pods, &extenderv1.MetaPod{UID: "uid-" + uid})
		}
		return m
	}
	answer := func(m map[string]*extenderv1.MetaVictims) any {
		return extenderv1.ExtenderPreemptionResult{NodeNameToMetaVictims: m}
	}
	on := func(node string) ([]record.PodRef, bool) {
		pods, ok := map[string][]record.PodRef{"a": {ref("v1"), ref("v2")}, "b": {ref("v3")}}[node]
		return pods, ok
	}
	type metas = map[string]*extenderv1.MetaVictims
	type victims = []place.ForeignVictims
	of := func(node string, violations int64, pods ...record.PodRef) place.ForeignVictims {
		return place.ForeignVictims{Node: node, Pods: pods, PDBViolations: violations}
	}
	for _, scenario := range []struct {
		name      string
		ignorable bool
		answer    any
		want      []place.ForeignVictims
		err       string
	}{
		{"one of two nodes", false, answer(metas{"b": meta("v3")}), victims{of("b", 1, ref("v3"))}, ""},
		{"another victim on the node", false, answer(metas{"a": meta("v2")}), victims{of("a", 1, ref("v2"))}, ""},
		{"two nodes, in the order of their names", false, answer(metas{"b": meta("v3"), "a": meta("v2", "v1")}),
			victims{of("a", 1, ref("v2"), ref("v1")), of("b", 1, ref("v3"))}, ""},
		{"no node", false, answer(nil), nil, ""},
		{"a node that is unknown", false, answer(metas{"z": meta("v1")}), nil,
			`nodeinfo not found for node name "z"`},
		{"a victim on another node", false, answer(metas{"b": meta("v1")}), nil,
			"extender: URL claims to preempt pod (UID: uid-v1) on node: b, but the pod is not found on that node"},
		{"a node without victims", false, answer(metas{"a": meta("v1"), "b": meta()}), nil,
			`expected at least one victim pod on node "b"`},
		{"null for victims", false, answer(metas{"a": nil}), nil, `expected at least one victim pod on node "a"`},
		{"null for a victim", false, `{"NodeNameToMetaVictims": {"a": {"Pods": [null]}}}`, nil,
			"extender: URL claims to preempt pod (UID: ) on node: a, but the pod is not found on that node"},
		{"a node without victims, and may be ignored", true, answer(metas{"a": meta("v1"), "b": meta()}),
			victims{of("a", 1, ref("v1"))}, ""},
		{"fails, and may be ignored", true, http.StatusBadGateway, victims{of("a", 0, ref("v1")),
			of("b", 2, ref("v3"))}, ""},
		{"fails", false, http.StatusBadGateway, nil, "failed preempt with extender at URL URL/preempt, code 502"},
	} {
		for _, caches := range []bool{true, false} {
			t.Run(scenario.name, func(t *testing.T) {
				f := newFixture(t)
				f.pod("v1")
				f.pod("v3")
				s := f.server(func(_ string, body []byte) any {
					var args extenderv1.ExtenderPreemptionArgs
					if err := json.Unmarshal(body, &args); err != nil {
						t.Error(err)
					}
					if args.Pod == nil || len(args.NodeNameToMetaVictims)+len(args.NodeNameToVictims) != 2 ||
						caches != (args.NodeNameToVictims == nil) {
						t.Errorf("asked %s", body)
					}
					if caches && args.NodeNameToMetaVictims["b"].Pods[0].UID != "uid-v3" || !caches &&
						args.NodeNameToVictims["b"].Pods[0].Name != "v3" {
						t.Errorf("asked %s", body)
					}
					return scenario.answer
				})
				if x := f.with(filters(s)); x.Preempts(f.pod("p")) {
					t.Error("an extender without the verb has a say")
				}
				x := f.with(filters(s), configv1.Extender{URLPrefix: s.URL, PreemptVerb: "preempt",
					NodeCacheCapable: caches, Ignorable: scenario.ignorable})
				candidates := victims{of("a", 0, ref("v1")), of("b", 2, ref("v3"))}
				if !x.Preempts(f.pod("p")) {
					t.Error("no extender takes part")
				}
				got, err := x.Preempt(f.pod("p"), candidates, on)
				if scenario.err != "" {
					want := strings.ReplaceAll(strings.ReplaceAll(scenario.err, "URL/", s.URL+"/"), "extender: URL",
						"extender: "+s.URL)
					if err == nil || err.Error() != want {
						t.Errorf("error %v, want %q", err, want)
					}
				} else if err != nil || !reflect.DeepEqual(got, scenario.want) {
					t.Errorf("got %v, error %v, want %v", got, err, scenario.want)
				}
			})
		}
	}
}
