// SPDX-License-Identifier: Apache-2.0

package noop

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/bench/testbed"
)

// heldMost is how long a pod waits for its conditions before it is bound without them, with a message: changes may
// happen in another order than in the recorded run, and a pod that is never bound would give no information.
const heldMost = 20 * time.Second

// player is a no-op binder that replays a recording. Its binders execute scripts. A script whose conditions do not
// hold yet is parked, so that it blocks no binder.
type player struct {
	*binder
	recording Recording
	jobs      chan *job

	mu    sync.Mutex
	begun map[types.UID]bool // UID -> a script was chosen
	nodes map[string]int     // node that is there -> updates that were seen
	pods  map[string]podNow  // namespace/name -> the newest of that name
	// parked: what is waited for -> scripts that do.
	parked map[string][]*job
	claims map[string]*claimNow // namespace/name -> resource claim
	groups map[string]bool      // namespace/name -> a script has the group's writes
	// lent: namespace/name of a pod -> the script that becomes free when the pod is gone. free: namespace -> scripts
	// of deleted pods, for pods that are not in the recording: those of a steady state, whose number depends on the
	// speed.
	lent map[string]*loan
	free map[string][]Script
	// wanting: namespace -> pods of a steady state that wait for a script, the oldest first.
	wanting map[string][]*corev1.Pod
}

// podNow is the current state of a pod.
type podNow struct {
	uid        types.UID
	generation int64
	bound      bool
	gone       bool
}

// claimNow is the current state of a claim.
type claimNow struct {
	writing sync.Mutex // held over a write, so that writes follow each other
	// is and own are guarded by the player's lock.
	is  *resourceapi.ResourceClaim
	own *loan // of the pod that it was allocated for
}

// loan is a script that another pod can use when its pod and the allocation of its devices are gone.
type loan struct {
	namespace string
	script    Script
	gone      bool
	claims    map[string]bool // namespace/name -> is still allocated
}

// job is a script in execution.
type job struct {
	pod    *corev1.Pod
	script Script
	at     int
	since  time.Time         // it was put aside; zero when it was not
	forced bool              // it has waited long enough
	events map[string]string // name of an event in the recording -> here
	// inline: the events of this pod are changed later, so each is written before the script goes on.
	inline bool
}

func newPlayer(n *binder, file string) (*player, error) {
	r, err := ReadRecording(file)
	if err != nil {
		return nil, err
	}
	return playerOf(n, r), nil
}

func playerOf(n *binder, r Recording) *player {
	return &player{binder: n, recording: r, jobs: make(chan *job, 1<<20), begun: map[types.UID]bool{}, nodes: map[string]int{},
		pods: map[string]podNow{}, parked: map[string][]*job{}, claims: map[string]*claimNow{}, groups: map[string]bool{},
		lent: map[string]*loan{}, free: map[string][]Script{}, wanting: map[string][]*corev1.Pod{}}
}

// The conditions of parked scripts.
func nodeKey(name string) string { return "node " + name }
func podKey(key string) string   { return "pod " + key }
func claimKey(key string) string { return "claim " + key }

// wake checks the scripts that wait for a condition again. It must be called with mu held.
func (pl *player) wake(key string) {
	waiting := pl.parked[key]
	delete(pl.parked, key)
	for _, j := range waiting {
		pl.next(j)
	}
}

// next passes a script to the binders, or parks it. It must be called with mu held.
func (pl *player) next(j *job) {
	if key := pl.lacks(j); key != "" && !j.forced {
		if j.since.IsZero() {
			j.since = time.Now()
		}
		if time.Since(j.since) < heldMost {
			pl.parked[key] = append(pl.parked[key], j)
			return
		}
		j.forced = true
		fmt.Fprintf(pl.stderr, "%s: goes on after %s without %s\n", keyOf(j.pod), heldMost, key)
	}
	j.since = time.Time{}
	pl.jobs <- j
}

// lacks returns the condition for which a script waits, empty if it can continue. It must be called with mu held.
func (pl *player) lacks(j *job) string {
	if j.at == 0 {
		for _, c := range templateClaims(j.pod) {
			if name := claimNameOf(j.pod, c); name == "" {
				return podKey(keyOf(j.pod))
			} else if key := j.pod.Namespace + "/" + name; pl.claims[key] == nil {
				return claimKey(key)
			}
		}
	}
	if j.at >= len(j.script) || j.script[j.at].Do != BindPod {
		return ""
	}
	for _, need := range j.script[j.at].Needs {
		if key := pl.unmet(need); key != "" {
			return key
		}
	}
	return ""
}

func (pl *player) unmet(need Need) string {
	if need.Node != "" {
		if seen, there := pl.nodes[need.Node]; !there || seen < need.Updates {
			return nodeKey(need.Node)
		}
		return ""
	}
	p, known := pl.pods[need.Pod]
	if known && !(need.Gone && !p.gone) && p.generation >= need.Generation && (p.bound || !need.Bound) {
		return ""
	}
	return podKey(need.Pod)
}

// templateClaims returns the names in the pod of its claims that are made from templates.
func templateClaims(p *corev1.Pod) []string {
	var out []string
	for _, c := range p.Spec.ResourceClaims {
		if c.ResourceClaimTemplateName != nil {
			out = append(out, c.Name)
		}
	}
	return out
}

// claimNameOf returns the name of a claim that was made from a template, empty if it does not exist yet.
func claimNameOf(p *corev1.Pod, claim string) string {
	for _, s := range p.Status.ResourceClaimStatuses {
		if s.Name == claim && s.ResourceClaimName != nil {
			return *s.ResourceClaimName
		}
	}
	return ""
}

// podSeen chooses the script of a pod that waits and may be scheduled, once.
func (pl *player) podSeen(p *corev1.Pod) {
	pl.mu.Lock()
	defer pl.mu.Unlock()
	key := keyOf(p)
	pl.pods[key] = podNow{uid: p.UID, generation: p.Generation, bound: p.Spec.NodeName != ""}
	for _, j := range pl.parked[podKey(key)] {
		if j.pod.UID == p.UID {
			j.pod = p
		}
	}
	if p.Spec.NodeName == "" && len(p.Spec.SchedulingGates) == 0 && p.DeletionTimestamp == nil && !pl.begun[p.UID] {
		pl.begun[p.UID] = true
		pl.begin(p)
	}
	pl.wake(podKey(key))
}

func (pl *player) podGone(p *corev1.Pod) {
	pl.mu.Lock()
	defer pl.mu.Unlock()
	key := keyOf(p)
	now := pl.pods[key]
	if now.uid == p.UID {
		now.gone = true
		pl.pods[key] = now
	}
	if l := pl.lent[key]; l != nil && p.Spec.NodeName != "" {
		delete(pl.lent, key)
		l.gone = true
		pl.giveBack(l)
	}
	pl.wake(podKey(key))
}

// giveBack frees a script whose pod is gone and whose claims are not allocated. It must be called with mu held.
func (pl *player) giveBack(l *loan) {
	if !l.gone || len(l.claims) > 0 {
		return
	}
	for len(pl.wanting[l.namespace]) > 0 {
		p := pl.wanting[l.namespace][0]
		pl.wanting[l.namespace] = pl.wanting[l.namespace][1:]
		if now := pl.pods[keyOf(p)]; now.uid == p.UID && !now.gone {
			pl.next(pl.job(p, l.script, true))
			return
		}
	}
	pl.free[l.namespace] = append(pl.free[l.namespace], l.script)
}

// begin chooses the script of a pod. A pod of a steady state that is not in the recording gets the script of a pod
// that was deleted from its namespace, and waits for one; other unknown pods are rejected. It must be called with mu
// held.
func (pl *player) begin(p *corev1.Pod) {
	if script, known := pl.recording.Scripts[keyOf(p)]; known {
		pl.next(pl.job(p, script, false))
	} else if free := pl.free[p.Namespace]; len(free) > 0 {
		pl.free[p.Namespace] = free[1:]
		pl.next(pl.job(p, free[0], true))
	} else if pl.recording.Steady[p.Namespace] {
		pl.wanting[p.Namespace] = append(pl.wanting[p.Namespace], p)
	} else {
		pl.next(pl.job(p, refusal(), true))
	}
}

// job returns a script with those of the pod's volumes and its group; others marks a script that was another pod's.
// It must be called with mu held.
func (pl *player) job(p *corev1.Pod, script Script, others bool) *job {
	key := keyOf(p)
	if at := script.bind(); at >= 0 {
		if others { // this one was never refused there
			script = slices.Clone(script)
			script[at].Needs = nil
		}
		pl.lent[key] = &loan{namespace: p.Namespace, script: script, claims: map[string]bool{}}
	}
	script = pl.withVolumes(p, script)
	if p.Spec.SchedulingGroup != nil && p.Spec.SchedulingGroup.PodGroupName != nil {
		group := p.Namespace + "/" + *p.Spec.SchedulingGroup.PodGroupName
		if !pl.groups[group] {
			pl.groups[group] = true
			script = slices.Concat(pl.groupScript(group), script)
		}
	}
	return &job{pod: p, script: script, events: map[string]string{},
		inline: slices.ContainsFunc(script, func(w Write) bool { return w.Do == PatchEvent })}
}

func (pl *player) groupScript(group string) Script {
	script := slices.Clone(pl.recording.Groups[group])
	for i := range script {
		script[i].Name = group
	}
	return script
}

// withVolumes puts the writes of a pod's volumes before its bind.
func (pl *player) withVolumes(p *corev1.Pod, script Script) Script {
	var volumes Script
	for _, v := range p.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			volumes = append(volumes, pl.recording.Volumes[p.Namespace+"/"+v.PersistentVolumeClaim.ClaimName]...)
		}
	}
	if at := script.bind(); len(volumes) > 0 && at >= 0 {
		return slices.Concat(script[:at], volumes, script[at:])
	}
	return script
}

// refusal returns the writes for a pod that fits no node.
func refusal() Script {
	const message = "0 nodes are available"
	status, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []corev1.PodCondition{{Type: corev1.PodScheduled,
		Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message}}}})
	if err != nil {
		panic(err)
	}
	event, err := json.Marshal(eventsv1.Event{Reason: "FailedScheduling", Action: "Scheduling", Type: corev1.EventTypeWarning, Note: message})
	if err != nil {
		panic(err)
	}
	return Script{{Do: PatchPod, Body: status}, {Do: CreateEvent, Body: event}}
}

func (pl *player) nodeThere(updates int) func(*corev1.Node) {
	return func(n *corev1.Node) {
		pl.mu.Lock()
		defer pl.mu.Unlock()
		pl.nodes[n.Name] += updates
		pl.wake(nodeKey(n.Name))
	}
}

func (pl *player) nodeGone(n *corev1.Node) {
	pl.mu.Lock()
	defer pl.mu.Unlock()
	delete(pl.nodes, n.Name)
}

// claimSeen notes a claim; one that is gone or not allocated any more frees its devices.
func (pl *player) claimSeen(c *resourceapi.ResourceClaim, gone bool) {
	pl.mu.Lock()
	defer pl.mu.Unlock()
	key := c.Namespace + "/" + c.Name
	now := pl.claims[key]
	if now == nil {
		now = &claimNow{}
		pl.claims[key] = now
	}
	newer := now.is == nil || versionOf(c) > versionOf(now.is)
	if newer {
		now.is = c
	}
	if l := now.own; l != nil && (gone || newer && c.Status.Allocation == nil) {
		now.own = nil
		delete(l.claims, key)
		pl.giveBack(l)
	}
	if gone {
		delete(pl.claims, key)
	}
	pl.wake(claimKey(key))
}

// overdue ends waits that took too long.
func (pl *player) overdue() {
	pl.mu.Lock()
	defer pl.mu.Unlock()
	for key, waiting := range pl.parked { // order: each by itself
		if slices.ContainsFunc(waiting, func(j *job) bool { return time.Since(j.since) >= heldMost }) {
			pl.wake(key)
		}
	}
}

// follow watches the objects that the player needs until ctx ends; listed is called when all are listed. It also
// watches volumes and their claims, which it does not use: a scheduler must watch them, and each of their changes
// costs the API server a message.
func (pl *player) follow(ctx context.Context, listed func()) {
	one := after(5, listed)
	var working sync.WaitGroup
	working.Go(func() {
		watchNodes(ctx, pl.clients.Watches, &shows[*corev1.Node]{added: pl.nodeThere(0), updated: pl.nodeThere(1), deleted: pl.nodeGone, listed: one})
	})
	working.Go(func() {
		watchPods(ctx, pl.clients.Watches, &shows[*corev1.Pod]{added: pl.podSeen, updated: pl.podSeen, deleted: pl.podGone, listed: one})
	})
	working.Go(func() {
		seen := func(c *resourceapi.ResourceClaim) { pl.claimSeen(c, false) }
		gone := func(c *resourceapi.ResourceClaim) { pl.claimSeen(c, true) }
		watchClaims(ctx, pl.clients.Watches, &shows[*resourceapi.ResourceClaim]{added: seen, updated: seen, deleted: gone, listed: one})
	})
	working.Go(func() {
		watchAll(ctx, pl.clients.Watches, pl.clients.Watches.CoreV1().PersistentVolumes(), &corev1.PersistentVolume{}, "",
			&shows[*corev1.PersistentVolume]{listed: one})
	})
	working.Go(func() {
		watchAll(ctx, pl.clients.Watches, pl.clients.Watches.CoreV1().PersistentVolumeClaims(metav1.NamespaceAll), &corev1.PersistentVolumeClaim{}, "",
			&shows[*corev1.PersistentVolumeClaim]{listed: one})
	})
	working.Go(func() {
		for testbed.Pause(ctx, time.Second) == nil {
			pl.overdue()
		}
	})
	working.Wait()
}

// playAll executes scripts until there are no more.
func (pl *player) playAll(ctx context.Context) {
	for j := range pl.jobs {
		if err := pl.play(ctx, j); err != nil && !apierrors.IsNotFound(err) {
			fmt.Fprintf(pl.stderr, "%s: %v\n", keyOf(j.pod), err)
		}
	}
}

// play continues a script until it is complete or has to wait.
func (pl *player) play(ctx context.Context, j *job) error {
	for ; j.at < len(j.script); j.at++ {
		w := &j.script[j.at]
		if w.Do == BindPod && !pl.ready(j) {
			return nil
		}
		if err := pl.do(ctx, j, w); err != nil {
			return fmt.Errorf("%s: %w", w.Do, err)
		}
	}
	return nil
}

// ready reports whether a script can continue; if not, it was parked.
func (pl *player) ready(j *job) bool {
	pl.mu.Lock()
	defer pl.mu.Unlock()
	if j.forced || pl.lacks(j) == "" {
		return true
	}
	pl.next(j)
	return false
}
