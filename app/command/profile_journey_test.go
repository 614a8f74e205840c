// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kumiki-scheduler/kumiki/apm/bundle"
	"github.com/kumiki-scheduler/kumiki/apm/journey"
	"github.com/kumiki-scheduler/kumiki/record"
)

// timesOf is a record of one pod, shop/web, which was observed at a time.
func timesOf(at record.Time) record.Timing {
	const ms = record.Time(time.Millisecond)
	return record.Timing{Epoch: "e", Now: at + 50*ms, Wall: at + 50*ms + 90*record.Second, Journeys: []record.Journey{{
		Pod: record.PodRef{Namespace: "shop", Name: "web", UID: "u1"}, Node: "n1", Began: at, Ended: at + 40*ms,
		End: record.EndBound, Attempts: 1, Spans: []record.PhaseSpan{
			{Phase: record.PhaseInbox, Start: at, Took: ms},
			{Phase: record.PhaseUnschedulable, Start: at + ms, Took: 29 * ms, Event: "NodeAdd", Hint: "NodeResourcesFit",
				Plugins: []string{"NodeResourcesFit", "TaintToleration"}},
			{Phase: record.PhaseSent, Start: at + 30*ms, Took: 10 * ms, Attempt: 1}}}},
		Evictions: []record.EvictionTiming{{For: record.PodRef{Namespace: "shop", Name: "web", UID: "u1"}, Node: "n1", Decision: 7,
			Requested: at + 2*ms, Sent: at + 5*ms, Terminating: at + 9*ms, Gone: at + 29*ms, Victims: 2, Pods: []record.VictimTiming{
				{Pod: record.PodRef{Namespace: "shop", Name: "low-1", UID: "v1"}, Sent: at + 5*ms, Terminating: at + 6*ms, Gone: at + 29*ms},
				{Pod: record.PodRef{Namespace: "shop", Name: "low-2", UID: "v2"}, Sent: at + 8*ms, Terminating: at + 9*ms, Gone: at + 12*ms}}}},
		Requests: []record.RequestTiming{{AuditID: "id1", Verb: "POST", Resource: "pods/binding", Namespace: "shop", Name: "web",
			Start: at + 30*ms, Connect: ms, Server: 5 * ms, Status: 201}}}
}

// auditOf is an audit log with the creation of the pod and its bind, of an API server with the same clock.
func auditOf(at record.Time) string {
	stamp := func(ms int) string {
		return time.Unix(0, int64(at)).Add(time.Duration(ms) * time.Millisecond).UTC().Format("2006-01-02T15:04:05.000000Z")
	}
	event := func(id, subresource string, received, ended int) string {
		return fmt.Sprintf(`{"auditID":%q,"stage":"ResponseComplete","verb":"create","objectRef":{"resource":"pods","namespace":"shop",`+
			`"name":"web","subresource":%q},"requestReceivedTimestamp":%q,"stageTimestamp":%q}`+"\n", id, subresource, stamp(received), stamp(ended))
	}
	return event("a", "", -20, -15) + event("id1", "binding", 33, 35)
}

// withTimes serves what profiled serves, and times of pods.
func withTimes(t *testing.T, times record.Timing) (endpoint string) {
	t.Helper()
	inner, _ := profiled(t, nil)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/kumiki/v1/timing") {
			json.NewEncoder(w).Encode(times)
			return
		}
		http.Redirect(w, r, "https://"+inner+r.URL.String(), http.StatusTemporaryRedirect)
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// TestProfileOfAPod: recorded with an audit log, a pod is shown from the file in each form, and drawn.
func TestProfileOfAPod(t *testing.T) {
	at := record.Time(time.Now().UnixNano())
	audit := file(t, auditOf(at))
	name, errs := recordOf(t, withTimes(t, timesOf(at)), "--scheduler-insecure", "--audit-log", audit)
	if strings.Contains(errs, "no timing") {
		t.Errorf("progress: %s", errs)
	}
	code, out, errs := command(t, "kumiki", "profile", "pod", "shop/web", name)
	for _, want := range []string{"Pod:        shop/web (u1)", "unschedulable", "72.5%", "NodeAdd", "NodeResourcesFit,TaintToleration",
		"POST pods/binding", "was set by +90.00s since it started", "after 40.0ms and 1 attempt", "from the commit to the observation"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("code %d, no %q in\n%s%s", code, want, out, errs)
		}
	}
	for _, want := range []string{"7 2 pods +2.0ms 3.0ms 4.0ms 20.0ms 27.0ms gone", "shop/low-2 6.0ms 1.0ms 3.0ms 10.0ms"} {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
			t.Errorf("no eviction %q in\n%s", want, out)
		}
	}
	for _, named := range []string{"pod/web -n shop", "pods/web -n shop", "web --namespace shop"} { // as other commands name it
		words := strings.Fields(named)
		code, out, errs := command(t, append([]string{"kumiki", "profile", "pod", words[0], name}, words[1:]...)...)
		if code != 0 || !strings.Contains(out, "Pod:        shop/web (u1)") {
			t.Errorf("%s: code %d\n%s%s", named, code, out, errs)
		}
	}
	var r journey.Report
	if _, out, _ = command(t, "kumiki", "profile", "pod", "shop/web", name, "-o", "json"); json.Unmarshal([]byte(out), &r) != nil ||
		r.Total() != 40e6 || r.Arriving == nil || r.Arriving.Least > 15e6 || r.Arriving.Most < 20e6 {
		t.Errorf("%s", out)
	}
	if code, out, errs := command(t, "kumiki", "profile", "pod", "shop/web", name, "--audit-log", file(t, `{"auditID":"x","stage":"Panic"}`),
		"-o", "wide"); code != 0 || !strings.Contains(out, "Arriving:   - (the audit log has none of the 1 requests") ||
		!strings.Contains(out, "id1") {
		t.Errorf("code %d, with the log of another server:\n%s%s", code, out, errs)
	}
	if _, out, errs := command(t, "kumiki", "profile", "sequence", "shop/web", name); !strings.HasPrefix(out, "sequenceDiagram\n") {
		t.Errorf("%s%s", out, errs)
	}
	svg := filepath.Join(t.TempDir(), "web.svg")
	if code, out, errs := command(t, "kumiki", "profile", "sequence", "shop/web", name, "--format", "svg", "-f", svg); code != 0 || out != svg+"\n" {
		t.Errorf("code %d: %s%s", code, out, errs)
	}
	if text, err := os.ReadFile(svg); err != nil || !strings.HasPrefix(string(text), "<svg ") {
		t.Errorf("%.40s: %v", text, err)
	}
	for _, c := range []struct {
		line string
		code int
		want string
	}{
		{"pod shop/api " + name, 1, "pod shop/api has no recorded times"},
		{"pod shop/web/x " + name, 2, "the pod must be NAMESPACE/NAME"},
		{"pod shop/web " + audit, 1, "not a bundle"},
		{"pod shop/web " + name + " --audit-log " + name, 1, "contains no event of an audit log"},
		{"sequence shop/web " + name + " --axis cpu", 1, "the CPU time of the phases of a pod is not recorded"},
		{"sequence shop/web " + name + " --axis up", 2, "--axis must be one of wall, cpu"},
		{"sequence shop/web " + name + " --format png", 2, "--format must be one of mermaid, svg"},
	} {
		code, out, errs := command(t, append([]string{"kumiki", "profile"}, strings.Fields(c.line)...)...)
		if code != c.code || out != "" || !strings.Contains(errs, c.want) {
			t.Errorf("%s: code %d, output %q, errors %q, want %d and %q", c.line, code, out, errs, c.code, c.want)
		}
	}
}

// TestARecordingWithoutTimes: kube-scheduler has none, and the file says so; a scheduler whose times contradict each
// other is not believed.
func TestARecordingWithoutTimes(t *testing.T) {
	endpoint, ca := profiled(t, nil)
	name, _ := recordOf(t, "https://"+endpoint, "--scheduler-ca", ca)
	if code, _, errs := command(t, "kumiki", "profile", "pod", "shop/web", name); code != 1 || !strings.Contains(errs, "it is kube-scheduler or an older") {
		t.Errorf("code %d: %s", code, errs)
	}
	wrong := timesOf(1000)
	wrong.Journeys[0].Spans[1].Start++
	name, _ = recordOf(t, withTimes(t, wrong), "--scheduler-insecure")
	b, err := bundle.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if p, _ := b.Part(bundle.Timing); !strings.Contains(p.Missing, "contradict each other") {
		t.Errorf("%+v", p)
	}
}
