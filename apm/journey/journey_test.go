// SPDX-License-Identifier: Apache-2.0

package journey

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/kumiki-scheduler/kumiki/apm/bundle"
	"github.com/kumiki-scheduler/kumiki/record"
)

// start is a moment by the clock of the scheduler.
const start record.Time = 1_800_000_000_000_000_000

const ms = record.Time(time.Millisecond)

// sample is a record of two pods of one name, and of requests about the second one.
func sample() *record.Timing {
	web := record.PodRef{Namespace: "shop", Name: "web", UID: "2"}
	t := &record.Timing{Epoch: "e", Journeys: []record.Journey{
		{Pod: record.PodRef{Namespace: "shop", Name: "web", UID: "1"}, Began: start - 100*ms, Ended: start - 90*ms,
			End: record.EndGone, Spans: []record.PhaseSpan{{Start: start - 100*ms, Took: 10 * ms}}},
		{Pod: web, Gang: "shop/g", Began: start, Ended: start + 30*ms, End: record.EndBound, Attempts: 1,
			Spans: []record.PhaseSpan{{Start: start, Took: ms},
				{Phase: record.PhaseActive, Start: start + ms, Took: 9 * ms, Event: "Popped"},
				{Phase: record.PhaseSent, Start: start + 10*ms, Took: 20 * ms, Attempt: 1}}},
	}, Gangs: []record.GangTiming{{Gang: "shop/g", FirstMember: start - 5*ms, Quorum: start + 2*ms}},
		Evictions: []record.EvictionTiming{
			{For: record.PodRef{UID: "9"}, Decision: 3, Requested: start, Victims: 1, Pods: []record.VictimTiming{{Pod: web}}},
			{For: web, Decision: 1, Requested: start + 2*ms, Sent: start + 3*ms, Terminating: start + 4*ms, Gone: start + 8*ms, Victims: 1},
			{For: record.PodRef{UID: "8"}, Gang: "shop/g", Decision: 2, Requested: start + 5*ms, Failed: "denied", FailedAt: start + 6*ms},
			{For: record.PodRef{UID: "7"}, Decision: 4, Requested: start}}}
	for i, name := range []string{"web", "web", "other"} {
		t.Requests = append(t.Requests, record.RequestTiming{AuditID: fmt.Sprint("id", i), Verb: "POST",
			Resource: "pods/binding", Namespace: "shop", Name: name, Start: start + record.Time(i-1)*20*ms,
			Connect: ms, Server: 4 * ms, Status: 201})
	}
	return t
}

// TestOf: the newest pod of a name, with its gang and the requests of its time.
func TestOf(t *testing.T) {
	r, found := Of(sample(), "shop", "web")
	if !found || r.Pod.UID != "2" || r.Others != 1 || r.GangTiming == nil || len(r.Requests) != 1 ||
		r.Requests[0].AuditID != "id1" || r.ArrivingWhy != withoutLog {
		t.Errorf("%+v", r)
	}
	var evictions []string
	for _, e := range r.Evictions {
		evictions = append(evictions, fmt.Sprint(e.Decision, e.OfPod, len(e.Phases)))
	}
	if got := strings.Join(evictions, ", "); got != "3 true 1, 1 false 3, 2 false 1" || len(r.GangPhases) != 2 {
		t.Errorf("evictions %s, phases of the gang %+v", got, r.GangPhases)
	}
	if _, found := Of(sample(), "shop", "api"); found {
		t.Error("a pod without a journey is found")
	}
}

// TestAClockThatWasSet: the wall clock differs from the clock of the record by more than a second.
func TestAClockThatWasSet(t *testing.T) {
	for off, want := range map[record.Time]record.Time{0: 0, record.Second - 1: 0, -3600 * record.Second: -3600 * record.Second, 90 * record.Second: 90 * record.Second} {
		timing := sample()
		timing.Now, timing.Wall = start+50*ms, start+50*ms+off
		if r, _ := Of(timing, "shop", "web"); r.ClockSet != want {
			t.Errorf("%d ns off: the clock was set by %d", off, r.ClockSet)
		}
	}
	timing := sample()
	timing.Wall = 0 // an older file
	if r, _ := Of(timing, "shop", "web"); r.ClockSet != 0 {
		t.Errorf("without the wall clock: set by %d", r.ClockSet)
	}
}

// TestParse: what contradicts itself is an error with the reason.
func TestParse(t *testing.T) {
	good, err := json.Marshal(sample())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Parse(bytes.NewReader(good)); err != nil || len(got.Journeys) != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	for name, c := range map[string]struct{ from, to, want string }{
		"gap":           {`"took":9000000`, `"took":8999999`, "begins 1 ns after the end"},
		"order":         {`"phase":"active","start":1800000000001000000`, `"phase":"active","start":1799999999999000000`, "begins -2000000 ns"},
		"unknown phase": {`"phase":"sent"`, `"phase":"resting"`, "does not exist"},
		"gang":          {`"quorum":1800000000002000000`, `"quorum":1700000000000000000`, "times of gangs contradict each other: gang shop/g"},
		"eviction":      {`"gone":1800000000008000000`, `"gone":1800000000003000000`, "times of evictions contradict each other: eviction 1"},
		"negative":      {`"server":4000000`, `"server":-4000000`, "a part of request id0 is negative"},
		"truncated":     {`"requests":[`, `"requests":`, "reading the times of pods"},
		"more":          {`"epoch":"e"`, `"epoch":"e"}{"epoch":"f"`, "reading the times of pods"},
	} {
		bad := strings.Replace(string(good), c.from, c.to, 1)
		if bad == string(good) {
			t.Fatalf("%s: nothing was changed in %s", name, good)
		}
		if _, err := Parse(strings.NewReader(bad)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if _, err := Parse(strings.NewReader(string(good) + "{}")); err == nil || !strings.Contains(err.Error(), "more after its end") {
		t.Errorf("two documents: %v", err)
	}
}

// TestOpen: the part of a bundle, or why there is none.
func TestOpen(t *testing.T) {
	for _, has := range []bool{true, false} {
		var file bytes.Buffer
		w := bundle.NewWriter(&file)
		if has {
			text, _ := json.Marshal(sample())
			if err := w.Add(bundle.Part{Kind: bundle.Timing}, bytes.NewReader(text)); err != nil {
				t.Fatal(err)
			}
		} else {
			w.AddMissing(bundle.Part{Kind: bundle.Timing}, "an older kumiki")
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		b, err := bundle.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()), bundle.DefaultLimits)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Open(b)
		var missing *bundle.Missing
		if has && (err != nil || got.Epoch != "e") || !has && (!errors.As(err, &missing) || missing.Why != "an older kumiki") {
			t.Errorf("has %v: %+v, %v", has, got, err)
		}
	}
}

// serverAhead is by how much the clock of the API server is ahead in auditLog.
const serverAhead = 7 * 1000 * ms

// stamp writes a moment of the scheduler's clock as the API server writes it: by its clock, cut to microseconds.
func stamp(at record.Time) string {
	return time.Unix(0, int64(at+serverAhead)).UTC().Format("2006-01-02T15:04:05.000000Z")
}

// line is an event of an audit log.
func line(id, verb, resource, subresource, name, uid string, received, ended record.Time) string {
	return fmt.Sprintf(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","auditID":%q,"stage":"ResponseComplete","verb":%q,`+
		`"user":{"username":"u"},"objectRef":{"resource":%q,"subresource":%q,"namespace":"shop","name":%q,"uid":%q},`+
		`"responseStatus":{"code":201},"requestReceivedTimestamp":%q,"stageTimestamp":%q,"requestObject":{"secret":"x"}}`,
		id, verb, resource, subresource, name, uid, stamp(received), stamp(ended)) + "\n"
}

// auditLog has the requests of sample, and a pod that was committed between 12 and 10 ms before it was observed.
func auditLog() string {
	return line("a", "create", "pods", "", "web", "2", start-12*ms, start-10*ms) +
		line("id0", "create", "pods", "binding", "web", "", start-20*ms+2*ms, start-20*ms+4*ms) +
		line("id1", "create", "pods", "binding", "web", "", start+4*ms, start+5*ms) +
		line("x", "get", "nodes", "", "n", "", start, start)
}

// TestJoin: the offset of the clocks is bounded by the requests that both know, and the time before the first
// observation by the offset and the two times of the creation.
func TestJoin(t *testing.T) {
	timing := sample()
	log, err := ReadLog(strings.NewReader(auditLog()), timing)
	if err != nil {
		t.Fatal(err)
	}
	o, err := log.Join(timing)
	// id0 was received 2 ms after it was released and 3 ms before the answer; id1 4 ms after and 1 ms before.
	if want := (Offset{serverAhead - ms, serverAhead + 2*ms + resolution, 2}); err != nil || o != want {
		t.Errorf("offset %+v, want %+v: %v", o, want, err)
	}
	r, _ := Of(timing, "shop", "web")
	if want := (record.Interval{Least: 9*ms - resolution, Most: 14*ms + resolution}); r.Arriving == nil || *r.Arriving != want {
		t.Errorf("arriving %+v (%s), want %+v", r.Arriving, r.ArrivingWhy, want)
	}
	generated := strings.Replace(auditLog(), `"name":"web","uid":"2"},`, `"name":"","uid":""},"responseObject":{"metadata":`+
		`{"name":"web","uid":"2","annotations":{"secret":"x"}}},`, 1)
	if log, err = ReadLog(strings.NewReader(generated), timing); err != nil || len(log.created) != 1 || log.nameless != 0 {
		t.Errorf("a generated name: %+v, %v", log, err)
	}
	var kept bytes.Buffer
	if _, err := log.WriteTo(&kept); err != nil || strings.Count(kept.String(), "\n") != 3 || strings.Contains(kept.String(), "secret") {
		t.Errorf("kept: %s (%v)", &kept, err)
	}
	again := sample()
	if log, err = ReadLog(&kept, again); err != nil {
		t.Fatal(err)
	}
	if back, err := log.Join(again); err != nil || back != o {
		t.Errorf("read again, the offset is %+v: %v", back, err)
	}
}

// TestNoWrongNumber: a log that does not fit gives a reason, and no time.
func TestNoWrongNumber(t *testing.T) {
	for name, c := range map[string]struct {
		log  string
		why  string // of the whole log
		pods string // of the pod
	}{
		"without our user": {log: line("a", "create", "pods", "", "web", "2", start-12*ms, start-10*ms),
			why: "none of the 3 requests of the scheduler"},
		"a clock that jumps": {log: auditLog() + line("id2", "create", "pods", "binding", "other", "", start+5000*ms, start+5000*ms),
			why: "no offset of the clocks fits all 3 requests"},
		"created later": {log: strings.Replace(auditLog(), stamp(start-12*ms), stamp(start+500*ms), 1) +
			line("b", "create", "pods", "", "web", "2", start+500*ms, start+501*ms), pods: "created after the scheduler observed it"},
		"generated name": {log: strings.Replace(auditLog(), `"name":"web","uid":"2"`, `"name":"","uid":""`, 1),
			pods: "1 pods in it have no name"},
		"not created": {log: strings.Replace(auditLog(), `"name":"web","uid":"2"`, `"name":"api","uid":"2"`, 1),
			pods: "does not have the creation of the pod"},
		"another pod": {log: strings.Replace(auditLog(), `"name":"web","uid":"2"`, `"name":"web","uid":"7"`, 1),
			pods: "the creation of another pod of this name"},
		"two pods": {log: strings.Replace(auditLog(), `"uid":"2"`, `"uid":""`, 1) +
			line("b", "create", "pods", "", "web", "", start-500*ms, start-499*ms), pods: "2 creations of pods of this name"},
		"ends before it begins": {log: line("a", "create", "pods", "", "web", "2", start-10*ms, start-12*ms) +
			line("id1", "create", "pods", "binding", "web", "", start+4*ms, start+5*ms), pods: "does not have the creation"},
	} {
		timing := sample()
		log, err := ReadLog(strings.NewReader(c.log), timing)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_, err = log.Join(timing)
		if c.why != "" && (err == nil || !strings.Contains(err.Error(), c.why)) || c.why == "" && err != nil {
			t.Errorf("%s: %v, want %q", name, err, c.why)
		}
		r, _ := Of(timing, "shop", "web")
		if r.Arriving != nil || !strings.Contains(r.ArrivingWhy, c.pods) {
			t.Errorf("%s: arriving %+v, because %q, want %q", name, r.Arriving, r.ArrivingWhy, c.pods)
		}
	}
	for _, text := range []string{"", "no json\n", `{"a":1}` + "\n", strings.Repeat("x", maxAuditLine+1)} {
		if _, err := ReadLog(strings.NewReader(text), sample()); err == nil {
			t.Errorf("%.20q is taken for an audit log", text)
		}
	}
}

// hostile is a record whose texts try to leave their place.
func hostile() Report {
	r, _ := Of(sample(), "shop", "web")
	r.Spans[1].Event = "</text><script>alert(1)</script>\n    A->>B: forged; #9829; \x1b[2J\xff"
	r.Spans[1].Plugins = []string{"%%{init: x}%%", `"onload="x`}
	return r
}

// TestSequence: each phase is in the drawing, and no text of the record has a meaning in it.
func TestSequence(t *testing.T) {
	plain, _ := Of(sample(), "shop", "web")
	for name, r := range map[string]Report{"plain": plain, "hostile": hostile(), "on its way": {Journey: record.Journey{
		Began: start, Spans: []record.PhaseSpan{{Start: start}}}}, "empty": {}} {
		var svg, diagram bytes.Buffer
		if err := errors.Join(r.WriteSVG(&svg), r.WriteMermaid(&diagram)); err != nil {
			t.Fatal(err)
		}
		elements := map[string]int{}
		in := xml.NewDecoder(bytes.NewReader(svg.Bytes()))
		for {
			token, err := in.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%s: the drawing is no XML: %v\n%s", name, err, &svg)
			}
			if e, is := token.(xml.StartElement); is {
				elements[e.Name.Local]++
				for _, a := range e.Attr {
					if strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "href" {
						t.Errorf("%s: attribute %s", name, a.Name.Local)
					}
				}
			}
		}
		if elements["script"] != 0 || elements["rect"] != 1+len(r.bars()) {
			t.Errorf("%s: elements %v for %d phases", name, elements, len(r.bars()))
		}
		for _, line := range strings.Split(diagram.String(), "\n")[1:] {
			if strings.Contains(line, "forged") && !strings.HasPrefix(line, "    Note over ") || strings.Contains(line, "%%") ||
				strings.Contains(line, "\x1b") || strings.Contains(line, "<") {
				t.Errorf("%s: %q", name, line)
			}
		}
		for _, s := range r.Spans {
			if !strings.Contains(diagram.String(), ": "+s.Phase.String()+" ") || !strings.Contains(svg.String(), ">"+s.Phase.String()+" ") {
				t.Errorf("%s: no phase %s", name, s.Phase)
			}
		}
		if beside := "participant G as victims"; strings.Contains(diagram.String(), beside) != (len(r.Evictions) > 0) {
			t.Errorf("%s: %d evictions, and a lane of victims: %v", name, len(r.Evictions), strings.Contains(diagram.String(), beside))
		}
		for i := range r.Evictions {
			for _, s := range r.Evictions[i].Phases {
				text := fmt.Sprintf("eviction %d: %s ", r.Evictions[i].Decision, s.Phase)
				if !strings.Contains(diagram.String(), "    Note over G: "+text) || !strings.Contains(svg.String(), ">"+text) {
					t.Errorf("%s: no %s", name, text)
				}
			}
		}
	}
}

// FuzzParse: whatever a file contains, reading, drawing and joining it ends without a panic, and a journey that is
// returned has no gap.
func FuzzParse(f *testing.F) {
	good, _ := json.Marshal(sample())
	f.Add(good, auditLog())
	f.Add([]byte(`{"journeys":[{"began":9223372036854775807,"spans":[{"phase":"sent","start":9223372036854775807}]}]}`), "{}")
	f.Fuzz(func(t *testing.T, data []byte, audit string) {
		timing, err := Parse(bytes.NewReader(data))
		if err != nil {
			return
		}
		if log, err := ReadLog(strings.NewReader(audit), timing); err == nil {
			log.Join(timing)
		}
		for _, j := range timing.Journeys {
			r, _ := Of(timing, j.Pod.Namespace, j.Pod.Name)
			if err := errors.Join(r.Check(), r.WriteSVG(io.Discard), r.WriteMermaid(io.Discard)); err != nil {
				t.Error(err)
			}
			if a := r.Arriving; a != nil && (a.Least < 0 || a.Most < a.Least) {
				t.Errorf("arriving %+v", a)
			}
		}
	})
}
