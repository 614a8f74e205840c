// SPDX-License-Identifier: Apache-2.0

package view

import (
	"net/http"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/record"
	"github.com/kumiki-scheduler/kumiki/timing"
)

// An answer has as many journeys, gangs, evictions and requests, each: about 2 KiB per pod with its requests.
const (
	defaultTimings = 100
	maxTimings     = 10000
)

// timingQuery reads ?limit and ?since (nanoseconds since the Unix epoch) of a request, or answers it.
func (v *View) timingQuery(w http.ResponseWriter, r *http.Request) (q timing.Query, ok bool) {
	q.Limit = defaultTimings
	if text := r.FormValue("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > maxTimings {
			refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest,
				"limit must be a number from 0 to "+strconv.Itoa(maxTimings)+", got "+strconv.Quote(text))
			return q, false
		}
		q.Limit = n
	}
	if text := r.FormValue("since"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest,
				"since must be a time in nanoseconds since 1970, got "+strconv.Quote(text))
			return q, false
		}
		q.Since = record.Time(n)
	}
	if v.timing == nil {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "this scheduler does not record times")
		return q, false
	}
	return q, true
}

// serveTiming answers with the newest journeys of ?namespace, or of all; the histograms are of all.
func (v *View) serveTiming(w http.ResponseWriter, r *http.Request) {
	if q, ok := v.timingQuery(w, r); ok {
		q.Namespace = r.FormValue("namespace")
		answer(w, v.timing(q), true, nil, "")
	}
}

func (v *View) serveTimingOfPod(w http.ResponseWriter, r *http.Request) {
	if q, ok := v.timingQuery(w, r); ok {
		q.Namespace, q.Name = r.PathValue("namespace"), r.PathValue("name")
		t := v.timing(q)
		answer(w, t, len(t.Journeys) > 0, nil, unrecorded(q))
	}
}

// unrecorded is why there is no journey of a pod.
func unrecorded(q timing.Query) string {
	return "no times of pod " + q.Namespace + "/" + q.Name + " are recorded: it was bound before the scheduler " +
		"started, is not this scheduler's, or its record was overwritten"
}

// serveTiming needs list on the pods of the namespace, as the queue does.
func (n narrow) serveTiming(w http.ResponseWriter, r *http.Request) {
	namespace := namespaceOf(w, r, "times")
	if namespace == "" || !n.allowed(w, r, "list", namespace, "") {
		return
	}
	q, ok := n.v.timingQuery(w, r)
	if !ok {
		return
	}
	q.Namespace = namespace
	var t record.Timing
	if n.ask(w, r, func() { t = n.v.timing(q) }) {
		answer(w, redactor{namespace}.timing(t), true, nil, "")
	}
}

func (n narrow) serveTimingOfPod(w http.ResponseWriter, r *http.Request) {
	namespace, name := r.PathValue("namespace"), r.PathValue("name")
	if !n.allowed(w, r, "get", namespace, name) {
		return
	}
	q, ok := n.v.timingQuery(w, r)
	if !ok {
		return
	}
	q.Namespace, q.Name = namespace, name
	var t record.Timing
	if n.ask(w, r, func() { t = n.v.timing(q) }) {
		answer(w, redactor{namespace}.timing(t), len(t.Journeys) > 0, nil, unrecorded(q))
	}
}

// timing returns a record of one namespace, with requests about pods alone. Its histograms and counts of what was lost
// are of all.
func (n redactor) timing(t record.Timing) record.Timing {
	t.Only = n.namespace
	t.Journeys, _ = keep(t.Journeys, func(j record.Journey) bool { return n.ours(j.Pod) })
	for i := range t.Journeys {
		t.Journeys[i].Gang = n.key(t.Journeys[i].Gang)
	}
	t.Gangs, _ = keep(t.Gangs, func(g record.GangTiming) bool { return n.oursKey(g.Gang) })
	t.Evictions, _ = keep(t.Evictions, func(e record.EvictionTiming) bool { return n.ours(e.For) })
	for i := range t.Evictions {
		e := &t.Evictions[i]
		e.Gang, e.Failed = n.key(e.Gang), n.text(e.Failed)
		e.Pods, _ = keep(e.Pods, func(v record.VictimTiming) bool { return n.ours(v.Pod) })
	}
	t.Requests, _ = keep(t.Requests, func(q record.RequestTiming) bool {
		return q.Namespace == n.namespace && (q.Resource == "pods" || strings.HasPrefix(q.Resource, "pods/"))
	})
	for i := range t.Requests {
		t.Requests[i].Failed = n.text(t.Requests[i].Failed)
	}
	return t
}
