// SPDX-License-Identifier: Apache-2.0

package noop

import (
	"bytes"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func bindsTo(node string, needs ...Need) Script {
	return Script{{Do: BindPod, Node: node, Needs: needs}}
}

// begun takes the script that a binder would get next.
func begun(t *testing.T, pl *player) *job {
	t.Helper()
	select {
	case j := <-pl.jobs:
		return j
	default:
		return nil
	}
}

func wantBegun(t *testing.T, pl *player, when, pod, node string) {
	t.Helper()
	switch j := begun(t, pl); {
	case j == nil:
		t.Errorf("%s no pod begins, want %s", when, pod)
	case j.pod.Name != pod || j.script.bind() >= 0 && j.script[j.script.bind()].Node != node:
		t.Errorf("%s %s begins with %v, want %s on %s", when, j.pod.Name, j.script.kinds(), pod, node)
	}
}

func wantNone(t *testing.T, pl *player, when string) {
	t.Helper()
	if j := begun(t, pl); j != nil {
		t.Errorf("%s %s begins", when, j.pod.Name)
	}
}

func there(pl *player, nodes ...string) {
	for _, n := range nodes {
		pl.nodeThere(0)(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n}})
	}
}

// Catches: null that binds gated or deleted pods, or takes a pod twice.
func TestTheNullBinderPlaysWhatMayBeScheduled(t *testing.T) {
	pl := playerOf(newBinder(), Recording{Scripts: map[string]Script{"ns/known": bindsTo("a"), "ns/gated": bindsTo("a")}})
	there(pl, "a")
	gated, deleted := decided("gated", ""), decided("deleted", "")
	gated.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}}
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	for _, p := range []*corev1.Pod{gated, deleted, decided("known", ""), decided("known", ""), decided("known", "a")} {
		pl.podSeen(p)
	}
	wantBegun(t, pl, "of a gated pod, a deleted one, and one that is seen thrice,", "known", "a")
	wantNone(t, pl, "then")
	gated.Spec.SchedulingGates = nil
	pl.podSeen(gated)
	wantBegun(t, pl, "when its gates are open", "gated", "a")
	pl.podSeen(decided("foreign", ""))
	if j := begun(t, pl); j == nil || j.script.bind() >= 0 {
		t.Errorf("a pod that the recording does not know is not refused: %+v", j)
	}
}

// Catches: a pod that is bound before its node is there, before the node changed, or before its victim is gone; one
// that is never bound when these come in another order; one that waits without limit.
func TestTheNullBinderWaits(t *testing.T) {
	happens := []struct {
		what string
		now  func(*player)
	}{
		{"before its victim is gone", func(pl *player) { pl.podGone(decided("low", "a")) }},
		{"before its node has changed", func(pl *player) { pl.nodeThere(1)(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}) }},
		{"before another pod has changed", func(pl *player) {
			grown := decided("grows", "a")
			grown.Generation = 2
			pl.podSeen(grown)
		}},
		{"before the pod that it follows is bound", func(pl *player) { pl.podSeen(decided("leads", "b")) }},
	}
	for last := range happens {
		pl := playerOf(newBinder(), Recording{Scripts: map[string]Script{
			"ns/high": bindsTo("a", Need{Node: "a", Updates: 1}, Need{Pod: "ns/low", Gone: true}, Need{Pod: "ns/grows", Generation: 2},
				Need{Pod: "ns/leads", Bound: true})}})
		pl.podSeen(decided("low", "a"))
		pl.podSeen(decided("leads", ""))
		wantBegun(t, pl, "a pod without a script", "leads", "")
		pl.podSeen(decided("high", ""))
		wantNone(t, pl, "without its node")
		there(pl, "a")
		for i := range happens {
			if i != last {
				happens[i].now(pl)
			}
		}
		wantNone(t, pl, happens[last].what)
		happens[last].now(pl)
		wantBegun(t, pl, "when all is as it was", "high", "a")
	}

	pl := playerOf(newBinder(), Recording{Scripts: map[string]Script{}})
	var complaints bytes.Buffer
	pl.stderr = &complaints
	pl.recording.Scripts["ns/late"] = bindsTo("nowhere", Need{Node: "nowhere"})
	pl.podSeen(decided("late", ""))
	wantNone(t, pl, "without its node")
	for _, j := range pl.parked[nodeKey("nowhere")] {
		j.since = j.since.Add(-heldMost)
	}
	pl.overdue()
	wantBegun(t, pl, "after long enough", "late", "nowhere")
	if complaints.Len() == 0 {
		t.Error("a pod that was bound before its conditions held is not reported")
	}
}

// Catches: the devices of a pod of a steady state given to the next one while its claim still has them, a pod that
// finds nothing free refused for good, and a place given to two.
func TestTheNullBinderReusesWhatIsFree(t *testing.T) {
	pl := playerOf(newBinder(), Recording{Scripts: map[string]Script{"ns/first": bindsTo("a")}, Steady: map[string]bool{"ns": true}})
	there(pl, "a")
	claim := func(version string, allocated bool) *resourceapi.ResourceClaim {
		c := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", ResourceVersion: version}}
		if allocated {
			c.Status.Allocation = &resourceapi.AllocationResult{}
		}
		return c
	}
	pl.claimSeen(claim("1", false), false)
	pl.podSeen(decided("first", ""))
	first := begun(t, pl)
	pl.holds(first, pl.claims["ns/c"], "ns/c")
	pl.claimSeen(claim("2", true), false)
	pl.podSeen(decided("second", ""))
	pl.podSeen(decided("third", ""))
	wantNone(t, pl, "while all places are taken")
	pl.podGone(decided("first", "a"))
	wantNone(t, pl, "while the claim of the pod that left has its devices")
	pl.claimSeen(claim("3", false), false)
	wantBegun(t, pl, "when the devices are free", "second", "a")
	wantNone(t, pl, "for the one place that is free")
}

// Catches: a script that begins before the claims of its pod are made, under names that are not known yet.
func TestTheNullBinderWaitsForClaims(t *testing.T) {
	pl := playerOf(newBinder(), Recording{Scripts: map[string]Script{"ns/p": {{Do: SetClaimStatus, Claim: "gpu"}}}})
	p := decided("p", "")
	template, name := "t", "p-gpu-1"
	p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: &template}}
	pl.podSeen(p)
	wantNone(t, pl, "without a claim")
	p = p.DeepCopy()
	p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: &name}}
	pl.podSeen(p)
	wantNone(t, pl, "while the claim is not seen")
	pl.claimSeen(&resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, ResourceVersion: "1"}}, false)
	if j := begun(t, pl); j == nil || claimNameOf(j.pod, "gpu") != name {
		t.Errorf("with its claim it begins as %+v", j)
	}
}

// Catches: a group's writes made once for each of its pods, or never; those of a volume after the bind that waits for
// them.
func TestTheNullBinderWritesOfGroupsAndVolumes(t *testing.T) {
	pl := playerOf(newBinder(), Recording{
		Scripts: map[string]Script{"ns/one": bindsTo("a"), "ns/two": bindsTo("a")},
		Groups:  map[string]Script{"ns/gang": {{Do: PatchGroup}}}, Volumes: map[string]Script{"ns/pvc": {{Do: WriteVolume, Name: "vol"}}}})
	there(pl, "a")
	group := "gang"
	for _, name := range []string{"one", "two"} {
		p := decided(name, "")
		p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group}
		if name == "two" {
			p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "pvc"}}}}
		}
		pl.podSeen(p)
	}
	wantScript(t, "the first of the group", begun(t, pl).script, "group ns/gang", "bind a")
	wantScript(t, "the second, with a volume", begun(t, pl).script, "volume vol", "bind a")
}
