// SPDX-License-Identifier: Apache-2.0

package noop

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// wrote is a line of the API server's log: verb, resource, namespace/name and what was sent.
func wrote(t *testing.T, verb, resource, sub, namespace, name, body string) audited {
	t.Helper()
	var a audited
	text := fmt.Sprintf(`{"stage":"ResponseComplete","verb":%q,"objectRef":{"resource":%q,"subresource":%q,"namespace":%q,"name":%q},"responseStatus":{"code":200},"requestObject":%s}`,
		verb, resource, sub, namespace, name, body)
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		t.Fatal(err)
	}
	return a
}

func recorded(t *testing.T, writes ...audited) Recording {
	t.Helper()
	r, err := recordingOf(writes, newObservations())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// kinds are what a script does, with the pods and names it does it to.
func (s Script) kinds() []string {
	var out []string
	for _, w := range s {
		text := string(w.Do)
		for _, of := range []string{w.Pod, w.Name, w.Claim, w.Node} {
			if of != "" {
				text += " " + of
			}
		}
		out = append(out, text)
	}
	return out
}

func wantScript(t *testing.T, what string, got Script, want ...string) {
	t.Helper()
	if kinds := got.kinds(); !slices.Equal(kinds, want) {
		t.Errorf("%s: %q, want %q", what, kinds, want)
	}
}

// Catches: a victim's condition, deletion or event that is left out, in a script of the victim, or in that of another
// pod that preempts; the event of a bind played twice.
func TestARecordingNamesTheVictims(t *testing.T) {
	bind := func(name, node string) audited {
		return wrote(t, "create", "pods", "binding", "ns", name, fmt.Sprintf(`{"metadata":{"uid":"0-%s"},"target":{"name":%q}}`, map[string]string{"low": "1", "high": "2", "other": "3"}[name], node))
	}
	event := func(reason, about, note string) audited {
		return wrote(t, "create", "events", "", "ns", about+".1", fmt.Sprintf(`{"reason":%q,"regarding":{"kind":"Pod","namespace":"ns","name":%q,"uid":"x"},"note":%q}`, reason, about, note))
	}
	r := recorded(t, bind("low", "a"), event("Scheduled", "low", ""), bind("other", "b"),
		wrote(t, "patch", "pods", "status", "ns", "low", `{"metadata":{"uid":"0-1"},"status":{"conditions":[{"type":"DisruptionTarget","status":"True"}]}}`),
		wrote(t, "delete", "pods", "", "ns", "low", `{}`),
		event("Preempted", "low", "Preempted by pod 0-2 on node a"),
		wrote(t, "patch", "pods", "status", "ns", "high", `{"status":{"nominatedNodeName":"a"}}`), event("FailedScheduling", "high", "no capacity"), bind("high", "a"))
	wantScript(t, "the victim", r.Scripts["ns/low"], "bind a")
	wantScript(t, "the pod that preempts", r.Scripts["ns/high"], "patchPod ns/low", "deletePod ns/low", "event ns/low low.1", "patchPod", "event high.1", "bind a")
	if low, other := r.Scripts["ns/low"][0], r.Scripts["ns/other"][0]; !low.Told || other.Told {
		t.Errorf("there is an event about the bind of low, %v, and not of other's, %v", low.Told, other.Told)
	}
	if body := string(r.Scripts["ns/high"][0].Body); body != `{"status":{"conditions":[{"type":"DisruptionTarget","status":"True"}]}}` {
		t.Errorf("the UID of the recorded victim would be sent: %s", body)
	}
	if len(r.Left) != 0 {
		t.Errorf("these writes belong to no pod: %v", r.Left)
	}
}

// Catches: the status of a shared claim given to one of its pods twice, a finalizer in the script of a later pod, a
// claim from a template under the name that it had in the recorded run, and a claim that the scheduler made without
// its name.
func TestARecordingSaysWhoseClaim(t *testing.T) {
	status := func(name, meta string, pods ...string) audited {
		var of []string
		for _, p := range pods {
			of = append(of, fmt.Sprintf(`{"resource":"pods","name":%q,"uid":"u"}`, p))
		}
		return wrote(t, "update", "resourceclaims", "status", "ns", name,
			fmt.Sprintf(`{"metadata":{"namespace":"ns","name":%q%s},"status":{"allocation":{"devices":{}},"reservedFor":%s}}`, name, meta, "["+strings.Join(of, ",")+"]"))
	}
	const template, made = `,"annotations":{"resource.kubernetes.io/pod-claim-name":"gpu"},"ownerReferences":[{"kind":"Pod","name":"own"}]`, `,"ownerReferences":[{"kind":"Pod","name":"asks"}]`
	r := recorded(t,
		wrote(t, "patch", "resourceclaims", "", "ns", "shared", `{"metadata":{"finalizers":["f"]}}`), status("shared", "", "one"), status("shared", "", "one", "two"),
		status("own-gpu-x7", template, "own"),
		wrote(t, "create", "resourceclaims", "", "ns", "", `{"metadata":{"namespace":"ns","generateName":"asks-","ownerReferences":[{"kind":"Pod","name":"asks"}]}}`),
		status("asks-b2", made, "asks"),
		wrote(t, "patch", "resourceclaims", "status", "ns", "shared", `{"status":{"allocation":null}}`))
	wantScript(t, "the first of two", r.Scripts["ns/one"], "changeClaim shared", "claimStatus shared")
	wantScript(t, "the second of two", r.Scripts["ns/two"], "claimStatus shared")
	wantScript(t, "of a template", r.Scripts["ns/own"], "claimStatus own-gpu-x7 gpu")
	wantScript(t, "made by the scheduler", r.Scripts["ns/asks"], "createClaim asks-b2", "claimStatus asks-b2")
	if want := map[string]int{"patch resourceclaims/status": 1}; !reflect.DeepEqual(r.Left, want) {
		t.Errorf("left are %v, want what took the allocation back", r.Left)
	}
}

// Catches: writes of groups and volumes that are lost.
func TestARecordingHasGroupsAndVolumes(t *testing.T) {
	r := recorded(t, wrote(t, "patch", "podgroups", "status", "ns", "gang", `{"status":{}}`),
		wrote(t, "update", "persistentvolumes", "", "", "vol", `{"metadata":{"name":"vol","uid":"7","resourceVersion":"9"},"spec":{"claimRef":{"namespace":"ns","name":"pvc"}}}`),
		wrote(t, "patch", "persistentvolumeclaims", "", "ns", "pvc", `{"metadata":{"annotations":{"a":"b"}}}`))
	wantScript(t, "the group", r.Groups["ns/gang"], "group")
	wantScript(t, "the volume", r.Volumes["ns/pvc"], "volume vol", "volumeClaim pvc")
	if body := string(r.Volumes["ns/pvc"][0].Body); body != `{"metadata":{"name":"vol"},"spec":{"claimRef":{"namespace":"ns","name":"pvc"}}}` {
		t.Errorf("the identity of the recorded volume would be sent: %s", body)
	}
}

func at(version int, p *corev1.Pod) *corev1.Pod {
	p.ResourceVersion = fmt.Sprint(version)
	return p
}

// Catches: a need for what happened before the refusal or after the bind, for what happened on other nodes, and for
// the bind of a neighbour; pods that were never refused waiting for anything but their node.
func TestWhatAPodWaitedFor(t *testing.T) {
	no := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse}
	node := func(version int, name string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: fmt.Sprint(version)}}
	}
	grown := func(name, node string, generation int64) *corev1.Pod {
		p := decided(name, node)
		p.Generation = generation
		return p
	}
	s := newObservations()
	s.nodeUpdated(node(5, "a"))
	s.podSeen(at(6, grown("early", "a", 1)))
	s.podSeen(at(7, grown("resized", "a", 1)))
	s.podSeen(at(8, decided("gone-before", "a")))
	s.podGone(at(9, decided("gone-before", "a")))
	s.podSeen(at(10, decided("waits", "", no)))
	s.nodeUpdated(node(11, "a"))
	s.nodeUpdated(node(12, "b"))
	s.podSeen(at(13, grown("resized", "a", 2)))
	s.podSeen(at(14, grown("neighbour", "a", 1)))
	s.podGone(at(15, grown("early", "a", 1)))
	s.podSeen(at(16, grown("waits", "", 3)))
	s.podSeen(at(17, grown("waits", "a", 3)))
	s.nodeUpdated(node(18, "a"))
	s.podSeen(at(19, grown("resized", "a", 3)))
	want := []Need{{Node: "a", Updates: 2}, {Pod: "ns/early", Gone: true}, {Pod: "ns/resized", Generation: 2}, {Pod: "ns/waits", Generation: 3}}
	if got := s.needs("ns/waits", "a"); !reflect.DeepEqual(got, want) {
		t.Errorf("it waits for %+v, want %+v", got, want)
	}
	if got := s.needs("ns/neighbour", "a"); !reflect.DeepEqual(got, []Need{{Node: "a"}}) {
		t.Errorf("a pod that was never refused waits for %+v", got)
	}

	s = newObservations()
	s.podSeen(at(3, decided("older", "")))
	s.podSeen(at(5, decided("follows", "", no)))
	for version, name := range map[int]string{6: "leads", 7: "next", 8: "never"} {
		s.podSeen(at(version, decided(name, "")))
	}
	for i, name := range []string{"older", "next", "leads", "follows", "never"} {
		s.podSeen(at(10+i, decided(name, "a")))
	}
	if got, want := s.needs("ns/follows", "a"), []Need{{Node: "a"}, {Pod: "ns/next", Bound: true}}; !reflect.DeepEqual(got, want) {
		t.Errorf("it waits for %+v, want %+v: the first bind of a pod that came after its refusal", got, want)
	}
}

func decided(name, node string, conditions ...corev1.PodCondition) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
		Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Conditions: conditions}}
}
