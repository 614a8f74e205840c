// SPDX-License-Identifier: Apache-2.0

package view

import (
	"strings"
	"testing"

	"github.com/kumiki-scheduler/kumiki/record"
	"github.com/kumiki-scheduler/kumiki/timing"
)

// timed is a view of a scheduler with pods, evictions and requests in two namespaces.
func timed() *View {
	r := timing.New(timing.Options{Epoch: "e"})
	cart, web := record.PodRef{Namespace: "shop", Name: "cart", UID: "1"}, record.PodRef{Namespace: "default", Name: "web", UID: "2"}
	for i, p := range []record.PodRef{cart, web} {
		r.BeginStep()
		r.Observed(p, "", 100, 110, false)
		r.Moved(&record.QueueMove{Pod: p, To: record.Active}, 110)
		r.EvictionRequested(record.EvictionTiming{For: p, Decision: uint64(i), Requested: 1, Victims: 1},
			[]record.PodRef{{Namespace: "shop", Name: "victim", UID: "v" + p.UID}})
		r.EvictionEnded(p, uint64(i), "evicting pod shop/victim for pod "+p.Key()+": denied", nil, 3)
		r.EndStep(120)
		r.Requested(timing.Request{Verb: "POST", Path: "/api/v1/namespaces/" + p.Namespace + "/pods/" + p.Name + "/binding"})
	}
	return fast(New(Options{Asker: asks(twoNamespaces{}), Timing: func(q timing.Query) record.Timing { return r.Read(q, 130, 130) }}))
}

// TestTiming: the whole record, that of a namespace, and that of a pod; limits are checked.
func TestTiming(t *testing.T) {
	h := timed().Handler()
	var all, shop, web record.Timing
	get(t, h, Prefix+"timing", &all)
	get(t, h, Prefix+"timing?namespace=shop", &shop)
	get(t, h, Prefix+"timing/pod/default/web", &web)
	for _, c := range []struct {
		name                          string
		t                             record.Timing
		journeys, evictions, requests int
	}{{"all", all, 2, 2, 2}, {"shop", shop, 1, 1, 1}, {"web", web, 1, 1, 1}} {
		if len(c.t.Journeys) != c.journeys || len(c.t.Evictions) != c.evictions || len(c.t.Requests) != c.requests {
			t.Errorf("%s: %+v", c.name, c.t)
		}
	}
	if len(all.Phase) != record.Phases || all.Epoch != "e" || all.Now != 130 {
		t.Errorf("%+v", all)
	}
	for path, code := range map[string]int{
		"timing?limit=10001": 400, "timing?limit=-1": 400, "timing?limit=x": 400, "timing?since=x": 400,
		"timing?limit=0": 200, "timing?since=5": 200, "timing/pod/default/unknown": 404,
	} {
		if got := get(t, h, Prefix+path, nil); got != code {
			t.Errorf("%s: %d, want %d", path, got, code)
		}
	}
	if got := get(t, New(Options{Asker: asks(engineOf{})}).Handler(), Prefix+"timing", nil); got != 404 {
		t.Errorf("a scheduler without a recorder answers %d", got)
	}
}

// TestTimingOfOneNamespace: identities that may see one namespace see no name of another. Faults: the right to one pod
// opens the namespace; a message of an eviction names its victim in another namespace.
func TestTimingOfOneNamespace(t *testing.T) {
	v := timed()
	for _, c := range []struct {
		path   string
		rights []string
		code   int
	}{
		{"timing?namespace=default", []string{"list default/"}, 200},
		{"timing?namespace=default", []string{"get default/", "get default/web", "list shop/"}, 403},
		{"timing", []string{"list default/", "list shop/"}, 403},
		{"timing/pod/default/web", []string{"get default/web"}, 200},
		{"timing/pod/shop/cart", []string{"get default/", "list default/"}, 403},
		{"timing/pod/default/cart", []string{"get default/"}, 404},
		{"timing?namespace=default&limit=x", []string{"list default/"}, 400},
	} {
		w := ask(v, c.path, rights(c.rights...))
		if w.Code != c.code {
			t.Errorf("%s with %v: %d, want %d: %s", c.path, c.rights, w.Code, c.code, w.Body)
		}
		if c.code == 200 && (strings.Contains(w.Body.String(), "shop") || !strings.Contains(w.Body.String(), `"only":"default"`)) {
			t.Errorf("%s shows another namespace: %s", c.path, w.Body)
		}
	}
}
