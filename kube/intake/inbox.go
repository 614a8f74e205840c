// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"cmp"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Inbox holds the newest compact record of every pod and node and of the other objects that are watched, and tells the
// engine what it does not know yet. Any goroutine may write to it; the loop alone takes from it.
type Inbox struct {
	// intakeMu guards the intake, apart from mu so that the loop never waits for a conversion.
	intakeMu   sync.Mutex
	intake     *convert.Intake
	namespaces map[string]string // namespace -> the one copy of the string that records share

	backlog
	pods  *rows[*cluster.Pod]
	nodes *rows[*cluster.Node]
	// objects are the other kinds that are watched, by rank.
	objects []*rows[cluster.Object]

	// groupsIfRead: pod groups count only if their API can be read. Otherwise groups is never groupsAbsent.
	groupsIfRead bool
	groups       groupAccess
	groupPolicy  bool // preemptionPolicy of pod groups counts
	// ungrouped are the pods without a node whose pod group cannot be read, until TakeUngrouped returns them:
	// key -> pod.
	// INV(ungrouped): empty while groups is groupsReadable.
	ungrouped map[objectKey]*cluster.Pod

	knownNodes, knownBound int       // nodes and bound pods that the engine knows
	listedAt               time.Time // when the last of the lists came; zero while one is awaited
	// behind is set from the start of a list until all it brought has been taken.
	behind bool
	synced bool // Synced was taken

	// trouble is called for objects that could not be converted.
	trouble func(object string, problem any)
}

// NewInbox returns an empty Inbox for pods, nodes, and objects of these kinds, each named once. trouble is called, from
// any goroutine, for each object whose conversion panicked; the object's version before stays.
func NewInbox(trouble func(object string, problem any), kinds ...cluster.Kind) *Inbox {
	in := &Inbox{
		intake:     convert.NewIntake(),
		namespaces: map[string]string{},
		ungrouped:  map[objectKey]*cluster.Pod{},
		behind:     true,
		backlog:    newBacklog(),
		trouble:    trouble,
	}
	in.nodes = newRows(nodeRank, (*cluster.Node).Equal, in.listedLocked)
	in.nodes.versions = map[objectKey]string{}
	in.pods = newRows(podRank, samePod, in.listedLocked)
	in.pods.keep = in.shareNodeName
	kinds = slices.Clone(kinds)
	slices.SortFunc(kinds, func(a, b cluster.Kind) int {
		return cmp.Compare(slices.Index(kindOrder, a), slices.Index(kindOrder, b))
	})
	for i, kind := range kinds {
		t := newRows(rank(i), sameObject, in.listedLocked)
		t.kind = kind
		keepUnwritten(t)
		in.objects = append(in.objects, t)
	}
	return in
}

// Kinds are the kinds of objects besides pods and nodes that are watched, in the order in which they become events.
func (in *Inbox) Kinds() []cluster.Kind {
	var kinds []cluster.Kind
	for _, t := range in.objects {
		kinds = append(kinds, t.kind)
	}
	return kinds
}

// convertPod makes the compact record, nil when the object broke the intake.
func (in *Inbox) convertPod(p *v1.Pod) (rec *cluster.Pod) {
	defer func() {
		if problem := recover(); problem != nil {
			in.trouble("pod "+p.Namespace+"/"+p.Name, problem)
			rec = nil
		}
	}()
	in.intakeMu.Lock()
	defer in.intakeMu.Unlock()
	rec = in.intake.Pod(p)
	rec.Limits = limitsOf(p)
	if shared, known := in.namespaces[rec.Namespace]; known {
		rec.Namespace = shared
	} else {
		in.namespaces[rec.Namespace] = rec.Namespace
	}
	return rec
}

func (in *Inbox) convertNode(n *v1.Node) (rec *cluster.Node) {
	defer func() {
		if problem := recover(); problem != nil {
			in.trouble("node "+n.Name, problem)
			rec = nil
		}
	}()
	in.intakeMu.Lock()
	defer in.intakeMu.Unlock()
	return in.intake.Node(n)
}

func (in *Inbox) convertObject(kind cluster.Kind, obj cluster.Object) (rec cluster.Object) {
	defer func() {
		if problem := recover(); problem != nil {
			in.trouble(string(kind)+" "+obj.GetNamespace()+"/"+obj.GetName(), problem)
			rec = nil
		}
	}()
	return Trim(obj)
}

// samePod reports whether the engine would learn nothing from b. The resource version counts only while the pod pends:
// then it is the precondition of status patches.
func samePod(a, b *cluster.Pod) bool {
	x := *a
	if a.NodeName != "" {
		x.ResourceVersion = b.ResourceVersion
	}
	return x == *b
}

// shareNodeName makes one copy of the string serve all pods of a node.
func (in *Inbox) shareNodeName(rec *cluster.Pod) {
	if node := in.nodes.rows[objectKey{name: rec.NodeName}].newest; node != nil {
		rec.NodeName = node.Name
	}
}

// Pod returns the newest record of a pod, nil when there is none of this UID.
func (in *Inbox) Pod(ref record.PodRef) *cluster.Pod {
	in.mu.Lock()
	defer in.mu.Unlock()
	p := in.pods.rows[objectKey{ref.Namespace, ref.Name}].newest
	if p == nil || string(p.UID) != ref.UID {
		return nil
	}
	return p
}

// Known counts the nodes and the bound pods that the engine knows.
func (in *Inbox) Known() (nodes, bound int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.knownNodes, in.knownBound
}

func bound(p *cluster.Pod) int {
	if p == nil || p.NodeName == "" {
		return 0
	}
	return 1
}

// awaitLists holds everything back until all lists have come afresh.
func (in *Inbox) awaitLists() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.pods.listed, in.nodes.listed, in.behind, in.listedAt = false, false, true, time.Time{}
	for _, t := range in.objects {
		t.listed = false
	}
}

func (in *Inbox) allListedLocked() bool {
	for _, t := range in.objects {
		if !t.listed {
			return false
		}
	}
	return in.pods.listed && in.nodes.listed
}

// goOnWithout counts objects as listed although the API server does not give them out: what is known of them stays.
func (in *Inbox) goOnWithout(t *rows[cluster.Object]) {
	in.mu.Lock()
	defer in.mu.Unlock()
	t.listed = true
	in.listedLocked(time.Now())
}

// listedLocked notes that a list came at the given time and has been taken in.
func (in *Inbox) listedLocked(came time.Time) {
	if in.listedAt.IsZero() && in.allListedLocked() {
		in.listedAt = came
	}
	in.signal()
}

// Listed is when the last of the lists came; zero while one is awaited.
func (in *Inbox) Listed() time.Time {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.listedAt
}

// Behind reports whether lists are awaited, or objects of the lists are not yet taken. The engine must not decide then.
func (in *Inbox) Behind() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.behind
}

// Take appends to into the next events for the engine, of at most limit objects, and returns it with how many
// objects were taken. The first objects are those of the initial lists, sorted by kind and name, pods last and nodes
// before them, pods without a node last of all and by creation; after the last of them comes Synced.
func (in *Inbox) Take(into []engine.Event, limit int) ([]engine.Event, int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.allListedLocked() {
		return into, 0
	}
	in.open(in.pendingLocked)
	taken := 0
	for ; taken < limit; taken++ {
		next, ok := in.pop()
		if !ok {
			break
		}
		switch next.rank {
		case nodeRank:
			into = in.nodeEvents(into, next.objectKey)
		case podRank:
			into = in.podEvents(into, next.objectKey)
		default:
			into = objectEvents(into, in.objects[next.rank], next.objectKey)
		}
	}
	if in.compact() {
		in.behind = false
		if !in.synced {
			in.synced = true
			into = append(into, engine.Synced{})
		}
	}
	return into, taken
}

// pendingLocked returns when a pod that has no node was created, and whether it is one.
func (in *Inbox) pendingLocked(key objectKey) (created record.Time, is bool) {
	pod := in.pods.rows[key].newest
	if pod == nil || pod.NodeName != "" {
		return 0, false
	}
	return pod.Created, true
}

func (in *Inbox) podEvents(into []engine.Event, key objectKey) []engine.Event {
	was, is := in.pods.tell(key)
	if in.groups != groupsReadable {
		in.noteUngroupedLocked(key, was, is)
	}
	if in.groups == groupsAbsent {
		is = withoutGroup(is)
	}
	in.knownBound += bound(is) - bound(was)
	if was != nil && (is == nil || is.UID != was.UID) {
		into = append(into, engine.PodGone{Pod: was.Ref()})
	}
	if is != nil {
		into = append(into, engine.PodSet{Pod: is})
	}
	return into
}

func (in *Inbox) nodeEvents(into []engine.Event, key objectKey) []engine.Event {
	was, is := in.nodes.tell(key)
	if was != nil {
		in.knownNodes--
		if is == nil || is.UID != was.UID {
			into = append(into, engine.NodeGone{Name: key.name})
		}
	}
	if is != nil {
		in.knownNodes++
		into = append(into, engine.NodeSet{Node: is})
	}
	return into
}

func objectEvents(into []engine.Event, t *rows[cluster.Object], key objectKey) []engine.Event {
	was, is := t.tell(key)
	if was != nil && (is == nil || is.GetUID() != was.GetUID()) {
		into = append(into, engine.ObjectGone{Kind: t.kind,
			Key: cluster.ObjectKey{Namespace: key.namespace, Name: key.name}})
	}
	if is != nil {
		into = append(into, engine.ObjectSet{Object: is})
	}
	return into
}

// nodeVersion is the version of a node that the watch brought last, empty for one that is not known.
func (in *Inbox) nodeVersion(name string) string {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.nodes.versions[objectKey{name: name}]
}

// waitingVersion is the version of a pod that waits, empty for one that is not known. Of a pod that is known to be
// bound later versions do not matter.
func (in *Inbox) waitingVersion(m metav1.PartialObjectMetadata) (version string, matters bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	p := in.pods.rows[objectKey{m.Namespace, m.Name}].newest
	if p == nil || string(p.UID) != string(m.UID) {
		return "", true
	}
	return p.ResourceVersion, p.NodeName == ""
}

// Pods are the records of all pods. The slice is a copy, so that the loop does not wait for its reader.
func (in *Inbox) Pods() []*cluster.Pod {
	in.mu.Lock()
	defer in.mu.Unlock()
	list := make([]*cluster.Pod, 0, len(in.pods.rows))
	for _, r := range in.pods.rows { // order: a registry sorts what it gathers
		if r.newest != nil {
			list = append(list, r.newest)
		}
	}
	return list
}

// Unwritten is the newest full version of an object that may yet be written; nil where there is none. It must not be
// changed.
func (in *Inbox) Unwritten(kind cluster.Kind, target cluster.Target) metav1.Object {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, t := range in.objects {
		if t.kind != kind || t.wanted == nil {
			continue
		}
		if o := t.whole[objectKey{target.Namespace, target.Name}]; o != nil &&
			string(o.GetUID()) == string(target.UID) {
			return o
		}
	}
	return nil
}
