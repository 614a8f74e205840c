// SPDX-License-Identifier: Apache-2.0

package noop

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	resourceapi "k8s.io/api/resource/v1"
)

// Recording has the writes of a scheduler in a correct run of a workload. The no-op binder repeats them: the objects
// of a workload have the same names in every run, so the writes that were correct for a name are correct again.
type Recording struct {
	// Scripts: namespace/name of a pod -> the writes that it caused, in order.
	Scripts map[string]Script `json:"scripts"`
	// Groups: namespace/name of a pod group -> its writes.
	Groups map[string]Script `json:"groups,omitempty"`
	// Volumes: namespace/name of a volume's claim -> the writes of the claim and its volume.
	Volumes map[string]Script `json:"volumes,omitempty"`
	// Steady: namespace -> its pods are replaced until the time is over; the scripts are those of the first of them.
	Steady map[string]bool `json:"steady,omitempty"`
	// Left: kind of call -> how many writes are in no script, such as those that undo an allocation.
	Left map[string]int `json:"left,omitempty"`
}

// Script is writes in the order in which they were made.
type Script []Write

// bind returns the index of the bind, -1 for a pod that was never bound.
func (s Script) bind() int { return slices.IndexFunc(s, func(w Write) bool { return w.Do == BindPod }) }

// WriteKind is a kind of write.
type WriteKind string

// The kinds of writes.
const (
	BindPod          WriteKind = "bind"        // the pod to Node, when the needs are met
	PatchPod         WriteKind = "patchPod"    // the status of Pod
	DeletePod        WriteKind = "deletePod"   // a victim
	CreateEvent      WriteKind = "event"       // about Pod
	PatchEvent       WriteKind = "patchEvent"  // Name, one more time
	CreateClaim      WriteKind = "createClaim" // Name, for devices that the pod asks for as resources
	ChangeClaim      WriteKind = "changeClaim" // its finalizers
	SetClaimStatus   WriteKind = "claimStatus" // allocation and reservation
	WriteVolume      WriteKind = "volume"      // Name
	WriteVolumeClaim WriteKind = "volumeClaim" // Name
	PatchGroup       WriteKind = "group"       // the status of a pod group
)

// Write is one call.
type Write struct {
	Do WriteKind `json:"do"`
	// Pod is the pod of the write if it is not the script's own, namespace/name.
	Pod  string `json:"pod,omitempty"`
	Node string `json:"node,omitempty"`
	// Told is set if the event that reports the bind followed it.
	Told bool   `json:"told,omitempty"`
	Name string `json:"name,omitempty"`
	// Claim is the name in the pod of a claim that was made from a template; its object has another name in each run.
	Claim string `json:"claim,omitempty"`
	// Patch: it was a patch, else an update.
	Patch bool            `json:"patch,omitempty"`
	Body  json.RawMessage `json:"body,omitempty"`
	Needs []Need          `json:"needs,omitempty"`
}

// Need is a condition for the bind of a pod to its recorded node: a change by others than the scheduler between its
// rejection and its bind, or that a pod which was created since is bound. Exactly one of Node and Pod is set; an
// empty Need always holds.
type Need struct {
	Node    string `json:"node,omitempty"` // is there
	Updates int    `json:"updates,omitempty"`
	Pod     string `json:"pod,omitempty"` // namespace/name
	Gone    bool   `json:"gone,omitempty"`
	// Generation of Pod is at least this.
	Generation int64 `json:"generation,omitempty"`
	Bound      bool  `json:"bound,omitempty"`
}

func (r Recording) Write(path string) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// ReadRecording reads what write has written.
func ReadRecording(path string) (Recording, error) {
	var r Recording
	text, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// scribe assigns the writes of a scheduler to the pods that caused them.
type scribe struct {
	out     Recording
	writes  []audited
	uids    map[string]string     // UID -> pod, namespace/name
	preempt map[string]string     // victim, namespace/name -> UID of the pod that it was evicted for
	claims  map[string]*claimFact // namespace/name -> what is known of a resource claim
	made    map[string]string     // pod, namespace/name -> claim that the scheduler made for it
	told    map[string]bool       // pod, namespace/name -> there was an event about its bind
}

// claimFact has the recorded facts about a resource claim.
type claimFact struct {
	template string          // what its pod calls it, for one that was made from a template
	reserved map[string]bool // pod -> was in the last status that was seen
	// users are the pods that its status was written for, in order.
	users []string
}

// recordingOf returns the scripts. The observations have the changes by others, and so the needs.
func recordingOf(writes []audited, seen *observations) (Recording, error) {
	s := &scribe{writes: writes, uids: map[string]string{}, preempt: map[string]string{}, claims: map[string]*claimFact{}, made: map[string]string{}, told: map[string]bool{},
		out: Recording{Scripts: map[string]Script{}, Groups: map[string]Script{}, Volumes: map[string]Script{}, Left: map[string]int{}}}
	for i := range writes {
		if err := s.learn(&writes[i]); err != nil {
			return Recording{}, err
		}
	}
	for i := range writes {
		if err := s.sort(&writes[i]); err != nil {
			return Recording{}, err
		}
	}
	for key, script := range s.out.Scripts { // order: each by itself
		if at := script.bind(); at >= 0 {
			script[at].Told = s.told[key]
			script[at].Needs = seen.needs(key, script[at].Node)
		}
	}
	return s.out, nil
}

// preemptedBy matches the event about a victim; the UID is that of its preemptor.
var preemptedBy = regexp.MustCompile(`^Preempted by pod ([0-9a-f-]+) `)

// learn determines which objects belong together.
func (s *scribe) learn(a *audited) error {
	switch a.what() {
	case "create events":
		var e eventsv1.Event
		if err := a.body(&e); err != nil {
			return err
		}
		regarding := e.Regarding.Namespace + "/" + e.Regarding.Name
		switch {
		case e.Reason == "Preempted":
			if by := preemptedBy.FindStringSubmatch(e.Note); by != nil {
				s.preempt[regarding] = by[1]
			}
		case e.Reason == "Scheduled":
			s.told[regarding] = true
		}
		s.uids[string(e.Regarding.UID)] = regarding
	case "create pods/binding":
		var b corev1.Binding
		if err := a.body(&b); err != nil {
			return err
		}
		s.uids[string(b.UID)] = a.key()
	case "update resourceclaims", "update resourceclaims/status":
		var c resourceapi.ResourceClaim
		if err := a.body(&c); err != nil {
			return err
		}
		s.learnClaim(a, &c)
	}
	return nil
}

func (s *scribe) learnClaim(a *audited, c *resourceapi.ResourceClaim) {
	fact := s.claims[a.key()]
	if fact == nil {
		fact = &claimFact{reserved: map[string]bool{}}
		s.claims[a.key()] = fact
	}
	fact.template = c.Annotations[resourceapi.PodResourceClaimAnnotation]
	if len(c.OwnerReferences) > 0 && fact.template == "" {
		s.made[c.Namespace+"/"+c.OwnerReferences[0].Name] = c.Name
	}
	if a.ObjectRef.Subresource == "" {
		return
	}
	now := map[string]bool{}
	for _, r := range c.Status.ReservedFor {
		pod := c.Namespace + "/" + r.Name
		now[pod] = true
		if !fact.reserved[pod] {
			fact.users = append(fact.users, pod)
		}
	}
	fact.reserved = now
}

// sort adds a write to its script.
func (s *scribe) sort(a *audited) error {
	switch a.what() {
	case "create pods/binding":
		var b corev1.Binding
		if err := a.body(&b); err != nil {
			return err
		}
		s.add(a.key(), Write{Do: BindPod, Node: b.Target.Name})
	case "patch pods/status":
		return s.sortPatch(a)
	case "delete pods":
		s.addVictim(a, Write{Do: DeletePod, Pod: a.key(), Body: a.RequestObject})
	case "create events", "patch events":
		return s.sortEvent(a)
	case "create resourceclaims":
		var c resourceapi.ResourceClaim
		if err := a.body(&c); err != nil {
			return err
		}
		if len(c.OwnerReferences) == 0 {
			return fmt.Errorf("a claim in %s that the scheduler made has no owner", c.Namespace)
		}
		pod := c.Namespace + "/" + c.OwnerReferences[0].Name
		s.add(pod, Write{Do: CreateClaim, Name: s.made[pod], Body: a.RequestObject})
	case "update resourceclaims", "patch resourceclaims", "update resourceclaims/status":
		return s.sortClaim(a)
	case "patch podgroups/status":
		body, err := withoutIdentity(a)
		if err != nil {
			return err
		}
		s.out.Groups[a.key()] = append(s.out.Groups[a.key()], Write{Do: PatchGroup, Body: body})
	case "update persistentvolumes", "patch persistentvolumes", "update persistentvolumeclaims", "patch persistentvolumeclaims":
		return s.sortVolume(a)
	default:
		s.out.Left[a.what()]++
	}
	return nil
}

func (s *scribe) add(pod string, w Write) { s.out.Scripts[pod] = append(s.out.Scripts[pod], w) }

// addVictim adds the writes about a victim to the script of its preemptor.
func (s *scribe) addVictim(a *audited, w Write) {
	if by, known := s.uids[s.preempt[a.key()]]; known {
		s.add(by, w)
		return
	}
	s.out.Left[a.what()]++
}

func (s *scribe) sortPatch(a *audited) error {
	var p corev1.Pod
	if err := a.body(&p); err != nil {
		return err
	}
	body, err := withoutIdentity(a)
	if err != nil {
		return err
	}
	if condition(&p, corev1.DisruptionTarget) == corev1.ConditionTrue {
		s.addVictim(a, Write{Do: PatchPod, Pod: a.key(), Body: body})
		return nil
	}
	s.add(a.key(), Write{Do: PatchPod, Body: body})
	return nil
}

func (s *scribe) sortEvent(a *audited) error {
	if a.Verb == "patch" {
		// Names of events begin with that of what they are about.
		for i := range s.writes {
			if made := &s.writes[i]; made.what() == "create events" && made.key() == a.key() {
				var e eventsv1.Event
				if err := made.body(&e); err != nil {
					return err
				}
				s.add(e.Regarding.Namespace+"/"+e.Regarding.Name, Write{Do: PatchEvent, Name: a.ObjectRef.Name, Body: a.RequestObject})
				return nil
			}
		}
		s.out.Left[a.what()]++
		return nil
	}
	var e eventsv1.Event
	if err := a.body(&e); err != nil {
		return err
	}
	about := e.Regarding.Namespace + "/" + e.Regarding.Name
	w := Write{Do: CreateEvent, Name: a.ObjectRef.Name, Body: a.RequestObject}
	switch by, victim := s.uids[s.preempt[about]]; {
	case e.Reason == "Scheduled":
		return nil // the bind knows
	case e.Reason == "Preempted" && victim:
		w.Pod = about
		s.add(by, w)
	case e.Regarding.Kind == "Pod":
		s.add(about, w)
	default:
		s.out.Left[a.what()]++
	}
	return nil
}

func (s *scribe) sortClaim(a *audited) error {
	fact := s.claims[a.key()]
	if fact == nil || len(fact.users) == 0 {
		s.out.Left[a.what()]++
		return nil
	}
	w := Write{Do: ChangeClaim, Name: a.ObjectRef.Name, Claim: fact.template, Patch: a.Verb == "patch"}
	user := fact.users[0] // of the next status
	if a.ObjectRef.Subresource == "" {
		body, err := withoutIdentity(a)
		if err != nil {
			return err
		}
		w.Body = body
	} else {
		var c resourceapi.ResourceClaim
		if err := a.body(&c); err != nil {
			return err
		}
		allocation, err := json.Marshal(c.Status.Allocation)
		if err != nil {
			return err
		}
		w.Do, w.Body = SetClaimStatus, allocation
		fact.users = fact.users[1:]
	}
	s.add(user, w)
	return nil
}

func (s *scribe) sortVolume(a *audited) error {
	body, err := withoutIdentity(a)
	if err != nil {
		return err
	}
	w := Write{Do: WriteVolumeClaim, Name: a.ObjectRef.Name, Patch: a.Verb == "patch", Body: body}
	claim := a.key()
	if a.ObjectRef.Resource == "persistentvolumes" {
		var v corev1.PersistentVolume
		if err := a.body(&v); err != nil {
			return err
		}
		if v.Spec.ClaimRef == nil {
			s.out.Left[a.what()]++
			return nil
		}
		w.Do, claim = WriteVolume, v.Spec.ClaimRef.Namespace+"/"+v.Spec.ClaimRef.Name
	}
	s.out.Volumes[claim] = append(s.out.Volumes[claim], w)
	return nil
}

// withoutIdentity returns the sent object without UID and resource version, which differ in the next run.
func withoutIdentity(a *audited) (json.RawMessage, error) {
	var all map[string]json.RawMessage // field -> value
	if err := a.body(&all); err != nil {
		return nil, err
	}
	var meta map[string]json.RawMessage // field -> value
	if raw, ok := all["metadata"]; ok {
		if err := json.Unmarshal(raw, &meta); err != nil {
			return nil, fmt.Errorf("%s of %s in the log of writes: %w", a.what(), a.key(), err)
		}
		for _, field := range []string{"uid", "resourceVersion", "managedFields", "creationTimestamp"} {
			delete(meta, field)
		}
		raw, err := json.Marshal(meta)
		if err != nil {
			return nil, err
		}
		if all["metadata"] = raw; len(meta) == 0 {
			delete(all, "metadata")
		}
	}
	return json.Marshal(all)
}
