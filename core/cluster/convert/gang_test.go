// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// allGangs counts every declaration there is.
var allGangs = GangRules{Group: true, Annotation: true, Sigs: true, Volcano: true, Pfnet: "pf.example/gang"}

// declaring is a pod with labels and annotations as key=value; group= is spec.schedulingGroup, label: begins a label.
func declaring(said ...string) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u", Labels: map[string]string{},
		Annotations: map[string]string{}}}
	for _, s := range said {
		key, value, _ := strings.Cut(s, "=")
		switch label, isLabel := strings.CutPrefix(key, "label:"); {
		case key == "group":
			p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &value}
		case key == "node":
			p.Spec.NodeName = value
		case isLabel:
			p.Labels[label] = value
		default:
			p.Annotations[key] = value
		}
	}
	return p
}

const (
	bySigs    = "label:scheduling.x-k8s.io/pod-group="
	byVolcano = "scheduling.k8s.io/group-name="
	byPfnet   = "pf.example/gang-name="
	sizePfnet = "pf.example/gang-size="
)

// TestWhatAPodSaysOfItsGang: each source, alone and against others. Mutants: an empty name is a gang; a source that
// is off counts; the last declaration wins; a size of 0 is none; a size that is no number is none.
func TestWhatAPodSaysOfItsGang(t *testing.T) {
	long := strings.Repeat("é", 200)
	for _, c := range []struct {
		says string // separated by spaces
		want string // source name size, or bad: and what it must hold; empty for no gang
	}{
		{"", ""},
		{"pod_group=", ""}, // R2
		{"pod_group= pod_group_size=nonsense", ""},
		{"pod_group=a", "annotation a 0"},
		{"pod_group=a pod_group_size=", "annotation a 0"},
		{"pod_group=a pod_group_size=4", "annotation a 4"},
		{"pod_group=a pod_group_size=1", "annotation a 1"},
		{"pod_group=a pod_group_size=0", "bad: annotation pod_group_size must be above 0, it is 0"},
		{"pod_group=a pod_group_size=-3", "bad: must be above 0, it is -3"},
		{"pod_group=a pod_group_size=150001", "bad: must be at most 150000, it is 150001"},
		{"pod_group=a pod_group_size=4.5", `bad: annotation pod_group_size is no number of pods: "4.5"`},
		{"pod_group=a pod_group_size=99999999999999999999", `bad: is no number of pods: "99999999999999999999"`},
		{"pod_group=a pod_group_size=" + long, "bad: …"},
		{"pod_group_size=4", ""},
		{"pod_group=a pod_group_size=6 pod_group_min_size=4", "annotation a 4 of 6"},
		{"pod_group=a pod_group_min_size=4", "annotation a 4"},
		{"pod_group=a pod_group_size=4 pod_group_min_size=", "annotation a 4"},
		{"pod_group=a pod_group_size=4 pod_group_min_size=4", "annotation a 4 of 4"},
		{"pod_group=a pod_group_size=4 pod_group_min_size=5",
			"bad: annotation pod_group_min_size must be at most 4, as pod_group_size says, it is 5"},
		{"pod_group=a pod_group_size=4 pod_group_min_size=0",
			"bad: annotation pod_group_min_size must be above 0, it is 0"},
		{"pod_group=a pod_group_min_size=few", `bad: annotation pod_group_min_size is no number of pods: "few"`},
		{"pod_group_min_size=4", ""},
		{"pod_group=" + long, "bad: the name of its gang (annotation) is 400 bytes long, at most 253 are allowed"},
		{"group=a", "podgroup a 0"},
		{"group=", ""},
		{bySigs + "a", "sigs a 0"},
		{byVolcano + "a", "volcano a 0"},
		{byPfnet + "a " + sizePfnet + "3", "pfnet a 3"},
		{byPfnet + "a", ""},
		{byPfnet + "a " + sizePfnet + "1", ""},
		{byPfnet + "a " + sizePfnet + "3 pf.example/gang-schedule-timeout-seconds=20", "pfnet a 3 for 20"},
		{byPfnet + "a " + sizePfnet + "3 pf.example/gang-schedule-timeout-seconds=0",
			`bad: must be a number of seconds from 1 to 86400, it is "0"`},
		{byPfnet + "a " + sizePfnet + "3 pf.example/gang-schedule-timeout-seconds=90000",
			`bad: from 1 to 86400, it is "90000"`},
		{byPfnet + "a " + sizePfnet + "3 pf.example/gang-schedule-timeout-seconds=1m", `bad: it is "1m"`},
		{byPfnet + "a " + sizePfnet + "0", "bad: annotation pf.example/gang-size must be above 0, it is 0"},
		// Two that say the same are one: that with an object counts, and the size that any of them states.
		{"group=a pod_group=a pod_group_size=4", "podgroup a 4"},
		{bySigs + "a " + byVolcano + "a", "sigs a 0"},
		{"pod_group=a pod_group_size=4 " + byPfnet + "a " + sizePfnet + "4", "annotation a 4"},
		{"pod_group=a " + byPfnet + "a " + sizePfnet + "4", "annotation a 4"},
		{"group=a pod_group=b", `bad: two declarations disagree: its gang is "a" by podgroup and "b" by annotation`},
		{bySigs + "a " + byVolcano + "b", `bad: its gang is "a" by sigs and "b" by volcano`},
		{"pod_group=a pod_group_size=4 " + byPfnet + "a " + sizePfnet + "5",
			`bad: two declarations disagree: gang "a" needs 4 pods by annotation and 5 by pfnet`},
		{"pod_group=a pod_group_size=6 pod_group_min_size=4 " + byPfnet + "a " + sizePfnet + "6",
			`bad: gang "a" needs 4 pods by annotation and 6 by pfnet`},
		{"group=a pod_group=a pod_group_size=0", "bad: annotation pod_group_size must be above 0"},
	} {
		in := NewIntake()
		in.DeclareGangs(allGangs)
		mark := in.Pod(declaring(strings.Fields(c.says)...)).Gang
		got := ""
		switch {
		case mark == nil:
		case mark.Bad != "":
			got = "bad: " + mark.Bad
		default:
			got = fmt.Sprintf("%s %s %d", mark.Key.Source, mark.Key.Name, mark.Size)
			if mark.Desired != 0 {
				got += fmt.Sprintf(" of %d", mark.Desired)
			}
			if mark.Timeout != 0 {
				got += fmt.Sprintf(" for %d", mark.Timeout/1e9)
			}
		}
		bad, isBad := strings.CutPrefix(c.want, "bad: ")
		if isBad && (mark == nil || mark.Bad == "" || !strings.Contains(mark.Bad, bad)) || !isBad && got != c.want {
			t.Errorf("%s: got %q, want %q", c.says, got, c.want)
		}
		if mark != nil && (mark.Key.Namespace != "ns" || len(mark.Key.Name) > 253 || len(mark.Bad) > 400) {
			t.Errorf("%s: %d bytes of name, %d of reason, namespace %q", c.says, len(mark.Key.Name), len(mark.Bad),
				mark.Key.Namespace)
		}
		if off := NewIntake().Pod(declaring(strings.Fields(c.says)...)); off.Gang != nil {
			t.Errorf("%s: in a gang although nothing counts: %+v", c.says, off.Gang)
		}
	}
}

// TestOnlySourcesThatAreOnCount, each alone. Mutant: a source is read under the switch of another.
func TestOnlySourcesThatAreOnCount(t *testing.T) {
	p := declaring("group=g", bySigs+"s", byVolcano+"v", "pod_group=a", byPfnet+"f", sizePfnet+"2")
	for want, rules := range map[string]GangRules{
		"podgroup/g": {Group: true}, "sigs/s": {Sigs: true}, "volcano/v": {Volcano: true},
		"annotation/a": {Annotation: true},
		"pfnet/f":      {Pfnet: "pf.example/gang"},
	} {
		in := NewIntake()
		in.DeclareGangs(rules)
		mark := in.Pod(p).Gang
		if mark == nil || mark.Bad != "" || mark.Key.Object() != (cluster.ObjectKey{Namespace: "ns", Name: want}) {
			t.Errorf("%+v: got %+v, want %s", rules, mark, want)
		}
	}
	in := NewIntake()
	in.DeclareGangs(GangRules{Group: true, GroupIfRead: true, Annotation: true})
	mark := in.Pod(p).Gang
	if mark.Bad == "" || mark.Unread == nil || mark.Unread.Key.Name != "a" || mark.Unread.Bad != "" {
		t.Errorf("what counts while pod groups cannot be read: %+v", mark)
	}
	if alone := in.Pod(declaring("group=g")).Gang; alone.Unread != nil {
		t.Errorf("apart from its pod group the pod says nothing, got %+v", alone.Unread)
	}
}

// TestMarksAreShared: pods with the same declaration share one mark, so that records of them are equal, and no mark
// is kept that no pod has any more. Mutant: each pod has its own.
func TestMarksAreShared(t *testing.T) {
	in := NewIntake()
	in.DeclareGangs(allGangs)
	bound := []string{"pod_group=a", "node=n", GangBoundAnnotation + "=a", GangDecisionAnnotation + "=7",
		GangQuorumAnnotation + "=3"}
	a, b := in.Pod(declaring(bound...)), in.Pod(declaring(bound...))
	if a.Gang == nil || a.Gang != b.Gang || a.Bound == nil || a.Bound != b.Bound {
		t.Fatalf("marks %p %p, %p %p", a.Gang, b.Gang, a.Bound, b.Bound)
	}
	read := cluster.Pod{Gang: &cluster.GangMark{Key: a.Gang.Key}, Bound: &cluster.BoundMark{Decision: 7, Quorum: 3}}
	if in.ShareMarks(&read); read.Gang != a.Gang || read.Bound != a.Bound {
		t.Error("marks that were read back are others")
	}
	for i := range 5000 {
		in.Pod(declaring(fmt.Sprintf("pod_group=%d", i)))
		if i%1000 == 0 {
			runtime.GC()
		}
	}
	if n := len(in.marks.known); n > 4000 {
		t.Errorf("%d marks are kept that no pod has", n)
	}
	runtime.KeepAlive(a)
}

// TestWhatABindingLeft is read from bound members only, and only when it was about the gang that the pod is in.
// Anybody who may edit a pod may write there. Mutants: a pending pod counts; another gang's quorum counts; a quorum
// of 0 counts.
func TestWhatABindingLeft(t *testing.T) {
	in := NewIntake()
	in.DeclareGangs(allGangs)
	left := func(gang, decision, quorum string) []string {
		return []string{GangBoundAnnotation + "=" + gang, GangDecisionAnnotation + "=" + decision,
			GangQuorumAnnotation + "=" + quorum}
	}
	for _, c := range []struct {
		says []string
		want cluster.BoundMark
	}{
		{append(left("a", "18446744073709551615", "3"), "pod_group=a", "node=n"),
			cluster.BoundMark{Decision: 1<<64 - 1, Quorum: 3}},
		{append(left("a", "7", "3"), "pod_group=a"), cluster.BoundMark{}},
		{append(left("b", "7", "3"), "pod_group=a", "node=n"), cluster.BoundMark{}},
		{append(left("a", "7", "3"), "node=n"), cluster.BoundMark{}},
		{append(left("a", "7", "0"), "pod_group=a", "node=n"), cluster.BoundMark{}},
		{append(left("a", "7", "150001"), "pod_group=a", "node=n"), cluster.BoundMark{}},
		{append(left("a", "-7", "3"), "pod_group=a", "node=n"), cluster.BoundMark{}},
		{append(left("a", "", ""), "pod_group=a", "node=n"), cluster.BoundMark{}},
	} {
		got := cluster.BoundMark{}
		if m := in.Pod(declaring(c.says...)).Bound; m != nil {
			got = *m
		}
		if got != c.want {
			t.Errorf("%v: got %+v, want %+v", c.says, got, c.want)
		}
	}
}

// TestWhereAPriorityComesFrom: from the spec alone, into which the API server has resolved the priority class; a pod
// without one has 0 (answer A18).
func TestWhereAPriorityComesFrom(t *testing.T) {
	five, less := int32(5), int32(-1)
	for _, c := range []struct {
		spec *int32
		says string
		want int32
	}{{nil, "", 0}, {&five, "", 5}, {&less, "", -1}, {&five, "priority=9", 5}, {nil, "priority=9", 0}} {
		p := declaring(c.says)
		p.Spec.Priority, p.Spec.PriorityClassName = c.spec, "any"
		if got := NewIntake().Pod(p).Spec.Priority; got != c.want {
			t.Errorf("with %v in the spec and %q on it: %d, want %d", c.spec, c.says, got, c.want)
		}
	}
}

// TestNothingInAPodBreaksTheMark: whatever stands there, a mark is bounded, and bad marks have no size.
func TestNothingInAPodBreaksTheMark(t *testing.T) {
	in := NewIntake()
	in.DeclareGangs(GangRules{Group: true, GroupIfRead: true, Annotation: true, Sigs: true, Volcano: true,
		Pfnet: "pf.example/gang"})
	rapid.Check(t, func(t *rapid.T) {
		var says []string
		for _, key := range []string{"group", "label:" + sigsLabel, volcanoAnnotation, gangAnnotation,
			gangSizeAnnotation, gangMinAnnotation, "pf.example/gang-name", "pf.example/gang-size", "node"} {
			if rapid.Bool().Draw(t, key) {
				says = append(says, key+"="+rapid.OneOf(rapid.String(),
					rapid.SampledFrom([]string{"a", "b", "", "3", "4", strings.Repeat("x", 300)})).Draw(t, "value"))
			}
		}
		m := in.Pod(declaring(says...)).Gang
		for ; m != nil; m = m.Unread {
			if m.Key.Name == "" && m.Bad == "" || len(m.Key.Name) > 253 || m.Size < 0 || m.Size > MaxGangSize ||
				m.Bad != "" && m.Size != 0 || len(m.Bad) > 1000 {
				t.Fatalf("%q became %+v", says, m)
			}
		}
	})
}
