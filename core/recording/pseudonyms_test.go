// SPDX-License-Identifier: Apache-2.0

package recording_test

import (
	"bytes"
	"cmp"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/recording"
	"github.com/kumiki-scheduler/kumiki/core/resource"
)

// named returns pseudonyms for the events of a recording, and its lines with them.
func named(t rapid.TB, events ...engine.Event) (*recording.Pseudonyms, string) {
	t.Helper()
	p := recording.NewPseudonyms()
	for _, ev := range events {
		if err := p.Collect(recording.AppendEvent(nil, ev)); err != nil {
			t.Fatal(err)
		}
	}
	p.Assign()
	var out strings.Builder
	for _, ev := range events {
		line, err := p.Line(recording.AppendEvent(nil, ev))
		if err != nil {
			t.Fatal(err)
		}
		if _, is, err := recording.NewReader().Event(line[:len(line)-1]); err != nil || !is {
			t.Fatalf("%s cannot be read: %v", line, err)
		}
		out.Write(line)
	}
	return p, out.String()
}

// TestPseudonymsKeepEqualityAndOrder: of names without slashes that are replaced, two are equal or in an order if and
// only if their pseudonyms are. No name is its own pseudonym.
func TestPseudonymsKeepEqualityAndOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z][a-z0-9.-]{2,8}[a-z]x`), 2, 30, rapid.ID).Draw(t, "names")
		var events []engine.Event
		for _, name := range names {
			events = append(events, engine.NodeSet{Node: &cluster.Node{Name: name}})
		}
		p, _ := named(t, events...)
		for _, a := range names {
			for _, b := range names {
				if got, want := cmp.Compare(p.Name(a), p.Name(b)), cmp.Compare(a, b); got != want {
					t.Fatalf("%s and %s become %s and %s", a, b, p.Name(a), p.Name(b))
				}
			}
			if p.Name(a) == a {
				t.Fatalf("%s stays", a)
			}
		}
	})
}

// TestWhatIsReplaced: names are, wherever a record has them, and consistently. What has a meaning of its own is not.
func TestWhatIsReplaced(t *testing.T) {
	node := &cluster.Node{Name: "secret-node", UID: "uid-1",
		Labels: map[string]string{"kubernetes.io/hostname": "secret-node", "topology.kubernetes.io/zone": "secret-zone",
			"secret.com/team": "payments", "level": "17", "gpus.com/model": "secret-model"},
		Allocatable: resource.Amounts{Scalars: []resource.Scalar{{Name: "gpus.com/gpu", Value: 8}}},
		Taints:      []v1.Taint{{Key: "secret-taint", Value: "true", Effect: v1.TaintEffectNoSchedule}},
		Images:      []cluster.Image{{Names: []string{"registry.secret.com/payments/app:v1"}, Size: 5}}}
	pod := &cluster.Pod{UID: "uid-2", Namespace: "payments", Name: "secret-pod", Nominated: "secret-node",
		Condition: cluster.Condition{Reason: "Unschedulable", Message: `pod secret-pod: node "secret-node" is in secret-zone. Insufficient gpus.com/gpu`},
		Spec: &cluster.PodSpec{SchedulerName: "default-scheduler", Labels: map[string]string{"app": "secret-pod"},
			Controller: cluster.Controller{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "secret-set"},
			Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{
				{Key: "level", Operator: v1.NodeSelectorOpGt, Values: []string{"16"}},
				{Key: "topology.kubernetes.io/zone", Operator: v1.NodeSelectorOpIn, Values: []string{"secret-zone"}}}}}},
			Volumes: []v1.Volume{{Name: "scratch", VolumeSource: v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{}}}}}}
	claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "payments", Name: "secret-pod-scratch",
		Annotations: map[string]string{"volume.kubernetes.io/selected-node": "secret-node", "about": "the secret database of payments/billing"}},
		Spec: v1.PersistentVolumeClaimSpec{StorageClassName: new(string)}}
	*claim.Spec.StorageClassName = "secret-class"
	p, text := named(t, engine.NodeSet{Node: node}, engine.PodSet{Pod: pod}, engine.ObjectSet{Object: claim},
		engine.BindDone{Pod: pod.Ref(), Node: "secret-node", Outcome: engine.BindFailed, Message: "secret-pod is too secret-node"})
	for _, name := range []string{"secret", "payments", "scratch", "level", "gpus.com/model", "billing"} {
		if strings.Contains(text, name) {
			t.Errorf("%s is in\n%s", name, text)
		}
	}
	for _, kept := range []string{"uid-1", "uid-2", "default-scheduler", "apps/v1", "ReplicaSet", "NoSchedule", `"16"`, `"17"`,
		"kubernetes.io/hostname", "topology.kubernetes.io/zone", "volume.kubernetes.io/selected-node", "Unschedulable", `"true"`, "is too",
		`"gpus.com/gpu"`, "Insufficient gpus.com/gpu"} {
		if !strings.Contains(text, kept) {
			t.Errorf("%s is not in\n%s", kept, text)
		}
	}
	for name, want := range map[string]string{
		"payments/secret-pod": p.Name("payments") + "/" + p.Name("secret-pod"),
		"secret-pod-scratch":  p.Name("secret-pod") + "-" + p.Name("scratch"),
		"unknown secret-pod":  "unknown " + p.Name("secret-pod"),
	} {
		if got := p.Name(name); got != want {
			t.Errorf("%s becomes %s, want %s", name, got, want)
		}
	}
	if n := p.Name("secret-node"); strings.Count(text, `"`+n+`"`) < 5 || !strings.Contains(text, `node \"`+n+`\" is in `) {
		t.Errorf("secret-node is not %s everywhere in\n%s", n, text)
	}
}

// TestLinesThatCannotBeRead give a reason.
func TestLinesThatCannotBeRead(t *testing.T) {
	for _, raw := range []string{"", "{", "{}", `{"event":"Unheard","data":{}}`, `{"event":"PodSet","data":7}`,
		`{"record":"Object","kind":"Unheard","data":{}}`, `{"record":"Pod","data":[]}`, `{"effect":"Heard","data":}`} {
		p := recording.NewPseudonyms()
		if err := p.Collect([]byte(raw)); err == nil {
			t.Errorf("%q is collected", raw)
		}
		if _, err := p.Line([]byte(raw)); err == nil {
			t.Errorf("%q is rewritten", raw)
		}
	}
}

// TestNamesInAnswersOfPlugins: answers of plugins have the pseudonyms of nodes and pods, alone and in messages. It
// catches answersKeepNames.
func TestNamesInAnswersOfPlugins(t *testing.T) {
	p, _ := named(t, engine.NodeSet{Node: &cluster.Node{Name: "secret"}})
	hosted := []byte{3, 6, 's', 'e', 'c', 'r', 'e', 't', 9, 's', 'e', 'c', 'r', 'e', 't', ' ', 'n', 'o', 1, 'x', 4, 2, 5, 1}
	line, err := p.Line(recording.AppendEffects(nil, []engine.Effect{engine.Heard{Hosted: hosted}}))
	if err != nil {
		t.Fatal(err)
	}
	heard, err := recording.Answers([][]byte{line})
	if err != nil || bytes.Contains(heard.Hosted, []byte("secret")) || !bytes.HasSuffix(heard.Hosted, []byte{1, 'x', 4, 2, 5, 1}) {
		t.Errorf("answers %q, %v", heard.Hosted, err)
	}
	if _, err := p.Line(recording.AppendEffects(nil, []engine.Effect{engine.Heard{Hosted: hosted[:5]}})); err == nil {
		t.Error("truncated answers are not an error")
	}
}
