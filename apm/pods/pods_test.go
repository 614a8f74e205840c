// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func sample() Times {
	return Times{Created: FromCall, Pods: []Pod{{Namespace: "shop", Name: "web-1", Created: 5, Bound: 9},
		{Namespace: "shop", Name: "web-2", Created: 6}}}
}

func text(t testing.TB, times Times) string {
	t.Helper()
	var out bytes.Buffer
	if err := times.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestTimesAreReadAsWritten(t *testing.T) {
	want := sample()
	got, err := Read(strings.NewReader(text(t, want)))
	if err != nil || !reflect.DeepEqual(*got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

// TestTheLimitOfPods: a writer counts what it drops, and a reader rejects more.
func TestTheLimitOfPods(t *testing.T) {
	times := Times{Created: FromWatch, Pods: make([]Pod, MaxPods-1)}
	for i := range times.Pods {
		times.Pods[i] = Pod{Namespace: "a", Name: fmt.Sprint("p", i), Created: 1}
	}
	for range 3 {
		times.Add(Pod{Namespace: "a", Name: "more", Created: 1})
	}
	if len(times.Pods) != MaxPods || times.Dropped != 2 {
		t.Fatalf("%d pods, %d dropped", len(times.Pods), times.Dropped)
	}
	whole := text(t, times)
	if got, err := Read(strings.NewReader(whole)); err != nil || got.Dropped != 2 {
		t.Errorf("at the limit: %v", err)
	}
	more := strings.Replace(whole, `"pods":[`, `"pods":[{"namespace":"a","name":"b","created":1},`, 1)
	if _, err := Read(strings.NewReader(more)); err == nil || !strings.Contains(err.Error(), "the limit is") {
		t.Errorf("above the limit: %v", err)
	}
}

// TestFalseTimesAreRejected: each with its reason, and without a value.
func TestFalseTimesAreRejected(t *testing.T) {
	good := text(t, sample())
	for name, c := range map[string]struct{ from, to, want string }{
		"unknown origin":    {`"create call"`, `"a guess"`, `the origin "a guess" of creations is unknown`},
		"bound too early":   {`"bound":9`, `"bound":4`, "pod shop/web-1 is created at 5 and bound at 4"},
		"never created":     {`"created":6`, `"created":0`, "pod shop/web-2 is created at 0"},
		"terminal escape":   {`web-2`, `web\u001b[2J`, "is not the name of a pod"},
		"path":              {`web-2`, `../web`, "is not the name of a pod"},
		"no name":           {`web-2`, ``, "is not the name of a pod"},
		"negative drop":     {`"pods"`, `"dropped":-1,"pods"`, "-1 dropped"},
		"not JSON":          {`{"created"`, `[`, "truncated or damaged"},
		"truncated":         {"]}\n", "", "truncated or damaged"},
		"a second document": {"]}\n", "]} {}", "something follows"},
		"a wrong type":      {`"created":6`, `"created":"6"`, "truncated or damaged"},
	} {
		if _, err := Read(strings.NewReader(strings.Replace(good, c.from, c.to, 1))); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	bad := sample()
	bad.Pods[0].Name = "Web"
	if err := bad.Write(&bytes.Buffer{}); err == nil {
		t.Error("a name that no reader accepts is written")
	}
}

const journeys = `{"journeys":[{"pod":{"namespace":"shop","name":"web-1"},"began":5,"ended":15,"end":"bound","spans":[
{"phase":"inbox","start":5,"took":2},{"phase":"sent","start":7,"took":8}]}]}`

// TestJourneysWithoutGaps: phases follow each other; lost spans at the beginning are allowed if they are declared.
func TestJourneysWithoutGaps(t *testing.T) {
	j, err := ReadJourneys(strings.NewReader(journeys))
	if err != nil || len(j.Journeys) != 1 || !j.Journeys[0].Whole() || j.Journeys[0].Key() != "shop/web-1" {
		t.Fatalf("%+v, %v", j, err)
	}
	for name, c := range map[string]struct{ from, to, want string }{
		"a gap":            {`"start":7,"took":8`, `"start":8,"took":7`, "begins 1 ns after the end"},
		"out of order":     {`"start":7`, `"start":4`, "begins -3 ns after the end"},
		"too short":        {`"took":8`, `"took":7`, "the phases end at 14, the pod at 15"},
		"negative":         {`"took":2`, `"took":-2`, "it takes -2 ns"},
		"overflow":         {`"start":7,"took":8`, `"start":7,"took":9223372036854775807`, "it takes"},
		"backwards":        {`"ended":15`, `"ended":4`, "the pod at 4"},
		"an empty phase":   {`"sent"`, `""`, "is no name"},
		"a hostile pod":    {`web-1`, `a\nb`, "is not the name of a pod"},
		"lost, undeclared": {`"began":5`, `"began":4`, "begins 1 ns after"},
	} {
		if _, err := ReadJourneys(strings.NewReader(strings.Replace(journeys, c.from, c.to, 1))); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	lost := strings.Replace(journeys, `"began":5`, `"lostSpans":1,"began":4`, 1)
	if j, err := ReadJourneys(strings.NewReader(lost)); err != nil || j.Journeys[0].Whole() {
		t.Errorf("with a declared loss: %v", err)
	}
}

// FuzzRead: whatever a part contains, reading it ends without a panic, and what is accepted can be written again.
func FuzzRead(f *testing.F) {
	f.Add(text(f, sample()))
	f.Add(journeys)
	f.Fuzz(func(t *testing.T, data string) {
		if times, err := Read(strings.NewReader(data)); err == nil {
			_ = text(t, *times)
		}
		if j, err := ReadJourneys(strings.NewReader(data)); err == nil {
			for _, one := range j.Journeys {
				sum := int64(0)
				for _, s := range one.Spans {
					sum += s.Took
				}
				if one.Whole() && one.Ended != 0 && sum != one.Ended-one.Began {
					t.Errorf("the phases of %s are %d, from begin to end it is %d", one.Key(), sum, one.Ended-one.Began)
				}
			}
		}
	})
}
