// SPDX-License-Identifier: Apache-2.0

package view

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/record"
)

// own is the namespace of the reader, secret is a part of every name in other namespaces.
const own, secret = "ml", "zz-secret"

// harmless are fields whose strings name no namespaced object: plugins, nodes, profiles, resources, enumerations, and
// what the pod itself declares. Every other string field is drawn with names of other namespaces, so a new field of a
// record fails TestAnswersNameNoOtherNamespace until redactor handles it or it is added here.
var harmless = map[string]bool{
	"PodReport.Profile": true, "PodReport.Where": true, "PodReport.Node": true, "PodReport.Nominated": true,
	"PodReport.Gates": true, "PodReport.Gate": true, "PodReport.Only": true, "ResourceAmount.Resource": true,
	"Fit.FeasibleExamples": true, "Fit.PreFilter": true, "Reason.Plugin": true, "Reason.Examples": true,
	"Remedy.Plugin": true, "Remedy.Node": true, "Remedy.Resource": true, "Remedy.Also": true,
	"WaitsFor.Plugin": true, "WaitsFor.Events": true, "QueueMove.From": true, "QueueMove.To": true,
	"QueueMove.Event": true, "QueueMove.Hint": true, "Decision.Profile": true, "Decision.Instance": true, "Decision.Verdict": true,
	"Decision.Path": true, "Decision.Plugins": true, "Candidate.Node": true, "PluginScore.Plugin": true,
	"GangPart.Source": true, "GangPart.Domains": true, "Preemption.Node": true, "VictimNode.Node": true,
	"Nomination.Node": true, "GangReport.Source": true, "GangReport.Where": true, "GangReport.Gate": true,
	"GangReport.Only": true, "GangEntry.Source": true, "GangEntry.Where": true, "GangEntry.Gate": true,
	"GangEntry.Plugins": true, "GangList.Only": true, "GangPod.State": true, "GangPod.Node": true, "GangFit.Verdict": true,
	"GangHold.Nodes": true, "GangFit.Blocked": true, "GangFit.Domains": true, "QueueReport.Only": true, "QueueEntry.Where": true,
	"QueueEntry.Profile": true, "QueueEntry.Plugins": true, "WhatIf.Only": true, "Supposed.Nodes": true,
	"Prospect.Outcome": true, "Prospect.Node": true,
}

// keyed are fields with namespace/name, texts are sentences.
var (
	keyed = map[string]bool{
		"PodReport.Gang": true, "PodReport.Group": true, "QueueMove.Gang": true, "GangPart.Name": true,
		"VictimUnit.Name": true, "GangReport.SparedFor": true, "GangHold.Gang": true, "QueueEntry.Gang": true,
		"WhatIf.Gang": true, "GangEntry.Name": true,
	}
	texts = map[string]bool{
		"PodReport.Before": true, "Pause.Reason": true, "Fit.PreFilterReason": true, "Reason.Reason": true,
		"Remedy.Do": true, "QueueMove.Cause": true, "Decision.PreFilter": true, "Decision.Message": true,
		"GangPart.Verdict": true, "GangPart.Proof": true, "Preemption.Message": true, "VictimUnit.Why": true,
		"VictimNode.Why": true, "GangReport.Reason": true, "GangEntry.Reason": true, "GangEntry.Verdict": true, "GangReport.Basis": true, "GangPod.Note": true,
		"GangFit.Message": true, "GangFit.Proof": true, "Supposed.If": true, "Supposed.Does": true,
		"WhatIf.Notes": true, "Prospect.Reason": true, "BlockedPod.Message": true,
	}
)

// drawing fills records with random values.
type drawing struct{ t *rapid.T }

func (d drawing) word(list ...string) string { return rapid.SampledFrom(list).Draw(d.t, "word") }

// foreign returns a namespace of others; one of them begins like the reader's.
func (d drawing) foreign() string { return d.word(secret, own+"-"+secret, secret+"-"+own) }

func (d drawing) ref() record.PodRef {
	if rapid.Bool().Draw(d.t, "own") {
		return record.PodRef{Namespace: own, Name: "mine", UID: "uid-mine"}
	}
	return record.PodRef{Namespace: d.foreign(), Name: d.word(secret, "web-"+secret), UID: "uid-" + secret}
}

func (d drawing) key() string { return d.ref().Key() }

func (d drawing) text() string {
	var parts []string
	for range rapid.IntRange(0, 3).Draw(d.t, "parts") {
		parts = append(parts, d.word("0/5 nodes are available: 3 Insufficient cpu. ", "pod ", "gang ", "(", "\"", "")+
			d.key()+d.word(" was bound", ": it says no", ", ", ".", ")", "\"", "; 2 nvidia.com/gpu"))
	}
	return strings.Join(parts, " ")
}

// fill sets a value; field is Type.Field of the struct that it is in.
func (d drawing) fill(v reflect.Value, field string) {
	switch v.Kind() {
	case reflect.Struct:
		if _, is := v.Interface().(record.PodRef); is {
			v.Set(reflect.ValueOf(d.ref()))
			return
		}
		for i := range v.NumField() {
			d.fill(v.Field(i), v.Type().Name()+"."+v.Type().Field(i).Name)
		}
	case reflect.Pointer:
		if rapid.Bool().Draw(d.t, "set") {
			v.Set(reflect.New(v.Type().Elem()))
			d.fill(v.Elem(), field)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), rapid.IntRange(0, 2).Draw(d.t, "items"), 2))
		for i := range v.Len() {
			d.fill(v.Index(i), field)
		}
	case reflect.String:
		switch {
		case harmless[field]:
			v.SetString("NodeAffinity")
		case keyed[field]:
			v.SetString(d.key())
		case texts[field]:
			v.SetString(d.text())
		default:
			v.SetString(secret)
		}
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(rapid.IntRange(0, 9).Draw(d.t, "number")))
	}
}

func drawn[T any](d drawing) (v T) {
	d.fill(reflect.ValueOf(&v).Elem(), "")
	return v
}

// checkRedacted checks that an answer has no name of another namespace, that its victims are counted, and that the
// original is as it was.
func checkRedacted[T any](t *rapid.T, original T, redact func(T) T, victims func(T) *record.Preemption) {
	before := encode(t, original)
	answer := redact(original)
	if text := encode(t, answer); strings.Contains(text, secret) {
		t.Fatalf("the answer names another namespace: %s", text)
	}
	if after := encode(t, original); after != before {
		t.Fatalf("the original has changed:\n%s\n%s", before, after)
	}
	was, is := victims(original), victims(answer)
	if was == nil {
		return
	}
	hidden := record.Elsewhere{}
	if is.Elsewhere != nil {
		hidden = *is.Elsewhere
	}
	if is.VictimCount() != len(was.Victims) || len(is.Units)+hidden.Units != len(was.Units) ||
		len(is.Stuck)+hidden.Stuck != len(was.Stuck) || len(is.Awaited)+hidden.Awaited != len(was.Awaited) ||
		len(is.Considered)+hidden.Considered != len(was.Considered) ||
		len(is.Denominated)+hidden.Denominated != len(was.Denominated) {
		t.Fatalf("counts of %+v, %+v, want those of %+v", is, hidden, was)
	}
}

func encode(t *rapid.T, v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestAnswersNameNoOtherNamespace: no string of another namespace is in the bytes of an answer, whatever the report
// holds; what is removed is counted, and the reports in the rings stay as they are. Faults: victims, units, the gang
// for which capacity is reserved or the user who paused keep their names; free text is passed as it is; the original
// is changed.
func TestAnswersNameNoOtherNamespace(t *testing.T) {
	n := redactor{own}
	mine := record.PodRef{Namespace: own, Name: "mine", UID: "uid-mine"}
	rapid.Check(t, func(t *rapid.T) {
		d := drawing{t}
		pod := drawn[record.PodReport](d)
		pod.Pod, pod.Only = mine, ""
		pod.Preemption = ensure(d, pod.Preemption)
		pod.Preemption.Elsewhere = nil
		checkRedacted(t, pod, n.pod, func(r record.PodReport) *record.Preemption { return r.Preemption })
		gang := drawn[record.GangReport](d)
		gang.Name = own + "/train"
		gang.Preemption = nil
		checkRedacted(t, gang, n.gang, func(r record.GangReport) *record.Preemption { return nil })
		queue := drawn[record.QueueReport](d)
		for i := range queue.Entries { // the UIDs are those of the pods of the entry's gang
			if e := &queue.Entries[i]; e.Pod.Namespace == own {
				e.Members = []string{"uid-mine"}
			}
		}
		checkRedacted(t, queue, n.queue, func(record.QueueReport) *record.Preemption { return nil })
		gangs := drawn[record.GangList](d)
		checkRedacted(t, gangs, n.gangs, func(record.GangList) *record.Preemption { return nil })
		whatIf := drawn[record.WhatIf](d)
		checkRedacted(t, whatIf, n.whatIf, func(record.WhatIf) *record.Preemption { return nil })
	})
}

func ensure(d drawing, p *record.Preemption) *record.Preemption {
	if p == nil {
		made := drawn[record.Preemption](d)
		p = &made
	}
	return p
}

// TestTextKeepsWhatIsNoName: counts, labels, resources and names of the reader's namespace stay in a text. Fault: every
// word with a slash is removed.
func TestTextKeepsWhatIsNoName(t *testing.T) {
	n := redactor{own}
	for text, want := range map[string]string{
		"0/5 nodes are available: 5 Insufficient nvidia.com/gpu.": "",
		"pod ml/web-1 has the disk":                               "",
		"tolerate the taint team/gpu=true:NoSchedule":             "",
		"free host port 80/TCP on n1":                             "",
		"pod shop/web-1 on n1 has the disk of volume v":           "pod (another namespace) on n1 has the disk of volume v",
		"gang ml-2/train. gang ml/train.":                         "gang (another namespace). gang ml/train.",
		"shop/a, shop/b":                                          "(another namespace), (another namespace)",
		"Kumiki/shop/train leaves it":                             "(another namespace) leaves it",
		`Post "http://x:80/filter": pod "shop/a" is unknown`:      `Post "http://x:80/filter": pod "(another namespace)" is unknown`,
	} {
		if want == "" {
			want = text
		}
		if got := n.text(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
