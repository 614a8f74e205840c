// SPDX-License-Identifier: Apache-2.0

package intake

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/record"
)

// FullObjects are the full pods and nodes of an Inbox, for code that is not ours and reads what it likes. They are the
// newest versions, and stay until the engine knows that they are gone. They must not be changed.
type FullObjects struct{ in *Inbox }

// KeepFull makes an Inbox keep full pods and nodes, about ten times the memory of its records. Call it before the first
// object comes.
func (in *Inbox) KeepFull() FullObjects {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.pods.whole, in.nodes.whole = map[objectKey]metav1.Object{}, map[objectKey]metav1.Object{}
	return FullObjects{in}
}

// KeepObjects makes the records of pods and nodes keep the objects that they are made of, so that code that is not
// native sees the version that the engine decides by. Call it before the first object comes.
func (in *Inbox) KeepObjects() {
	in.intakeMu.Lock()
	defer in.intakeMu.Unlock()
	in.keepsFull = true
	in.intake.KeepFull()
}

// Pod is nil when there is no pod of this UID.
func (w FullObjects) Pod(ref record.PodRef) *v1.Pod {
	w.in.mu.Lock()
	defer w.in.mu.Unlock()
	p, ok := w.in.pods.whole[objectKey{ref.Namespace, ref.Name}].(*v1.Pod)
	if !ok || string(p.UID) != ref.UID {
		return nil
	}
	return p
}

// Node is nil when there is no node of this name.
func (w FullObjects) Node(name string) *v1.Node {
	w.in.mu.Lock()
	defer w.in.mu.Unlock()
	n, _ := w.in.nodes.whole[objectKey{name: name}].(*v1.Node)
	return n
}
