// SPDX-License-Identifier: Apache-2.0

package cluster

import "fmt"

// ChangeKind is what a Change did.
type ChangeKind uint8

// The kinds. Their numbers are in encoded logs: a new kind goes to the end.
const (
	NodeChanged    ChangeKind = iota + 1 // Node exists in this version
	NodeRemoved                          // the object of node Name was deleted
	ObjectChanged                        // the API server has Object
	ObjectRemoved                        // the object of Kind and Key was deleted
	ObjectAssumed                        // Object is assumed: a write of it is decided
	ObjectRestored                       // nothing is assumed any more about the object of Kind and Key
	PodBound                             // the API server has Pod on a node
	PodTaken                             // a decision took capacity for Pod on node Name
	PodFreed                             // what a decision took for the pod of UID is free again
	PodRemoved                           // the pod of UID does not exist any more
)

// Change is one change of a store by its writer. A store that applies the changes of another one in their order shows
// the same nodes, pods and objects. Fields that the kind does not name are empty. Records are shared with the store and
// immutable.
type Change struct {
	Kind   ChangeKind
	Node   *Node
	Pod    *Pod
	Object Object
	Name   string // of a node
	UID    UID
	Type   Kind // of an object
	Key    ObjectKey
}

// changes are those that were not taken yet. What was rolled back is not among them.
//
// Rejected: the events that an engine receives. They do not say what it decided, and a follower would have to make the
// same decisions about them, such as which pods are its own.
type changes struct {
	keep bool
	list []Change
	// marks are the lengths of the undo list behind the changes of the open transaction, which are the last of list.
	marks []int
}

// KeepChanges makes the store keep its changes from now on, for TakeChanges.
func (s *Store) KeepChanges() { s.changes.keep = true }

// TakeChanges returns the changes since the call before, oldest first. Must be called outside a transaction. The
// result is valid until the next change.
func (s *Store) TakeChanges() []Change {
	if s.inTxn {
		panic(Broken("TakeChanges inside a transaction"))
	}
	c := &s.changes
	list := c.list
	c.list = c.list[:0]
	return list
}

// changed notes a change, after what undoes it.
func (s *Store) changed(ch Change) {
	c := &s.changes
	if !c.keep {
		return
	}
	c.list = append(c.list, ch)
	if s.inTxn {
		c.marks = append(c.marks, len(s.undo))
	}
}

// undone drops the changes above a mark of the undo list, which were rolled back.
func (c *changes) undone(mark int) {
	for n := len(c.marks); n > 0 && c.marks[n-1] > mark; n-- {
		last := len(c.list) - 1
		c.list[last] = Change{}
		c.list, c.marks = c.list[:last], c.marks[:n-1]
	}
}

// end makes the changes of a transaction final.
func (c *changes) end() { c.marks = c.marks[:0] }

// Apply makes a change that another store has made. It returns an error, and changes nothing, if the store cannot have
// been where that one was.
func (s *Store) Apply(ch Change) error {
	switch ch.Kind {
	case NodeChanged:
		s.SetNode(ch.Node)
	case NodeRemoved:
		if s.DeleteNode(ch.Name) == nil {
			return fmt.Errorf("node %q: there is none", ch.Name)
		}
	case ObjectChanged:
		s.SetObject(ch.Object)
	case ObjectRemoved:
		if s.DeleteObject(ch.Type, ch.Key) == nil {
			return fmt.Errorf("%s %v: there is none", ch.Type, ch.Key)
		}
	case ObjectAssumed, ObjectRestored:
		return s.applyAssumption(ch)
	case PodBound:
		if ch.Pod.NodeName == "" {
			return fmt.Errorf("pod %s: it is bound to no node", ch.Pod.Key())
		}
		s.SetPod(ch.Pod)
	case PodTaken:
		n, there := s.index[ch.Name]
		if held := s.pods[ch.Pod.UID]; held != nil || !there {
			return fmt.Errorf("pod %s: it holds capacity already, or there is no node %q", ch.Pod.Key(), ch.Name)
		}
		s.assume(ch.Pod, n)
	case PodFreed:
		if !s.Forget(ch.UID) {
			return fmt.Errorf("pod %s: no capacity is assumed for it", ch.UID)
		}
	case PodRemoved:
		if _, held := s.DeletePod(ch.UID); !held {
			return fmt.Errorf("pod %s: it holds no capacity", ch.UID)
		}
	default:
		return fmt.Errorf("change of kind %d", ch.Kind)
	}
	return nil
}

// applyAssumption makes a change of what is assumed about an object.
func (s *Store) applyAssumption(ch Change) error {
	if ch.Kind == ObjectAssumed {
		known := ""
		if was := s.table(KindOf(ch.Object)).slots[KeyOf(ch.Object)]; was.api != nil {
			known = was.api.GetResourceVersion()
		}
		if known != ch.Object.GetResourceVersion() {
			return fmt.Errorf("%s %v: assumed at resourceVersion %q, known is %q", KindOf(ch.Object), KeyOf(ch.Object),
				ch.Object.GetResourceVersion(), known)
		}
		s.assumeObject(ch.Object)
		return nil
	}
	if s.restoreObject(ch.Type, ch.Key) == nil {
		return fmt.Errorf("%s %v: nothing is assumed about it", ch.Type, ch.Key)
	}
	return nil
}
