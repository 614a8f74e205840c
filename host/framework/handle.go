// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/message"
	"github.com/kumiki-scheduler/kumiki/record"
)

// ErrAbsent is the error of the methods of Handle that this version does not have; docs/plugins.md lists them.
var ErrAbsent = errors.New("kumiki does not have this method of Handle")

// handle is what plugins receive from their factory.
type handle struct{ p *Profile }

var _ fwk.Handle = (*handle)(nil)

func absent(method string) error { return fmt.Errorf("%w: %s", ErrAbsent, method) }

// SnapshotSharedLister returns the nodes as they are in the decision.
func (h *handle) SnapshotSharedLister() fwk.SharedLister { return lister{h.p.host} }

// MutableSnapshotSharedLister returns the nodes as they are in the decision, too: PostFilter of upstream's
// DefaultPreemption reads them there. Only PodGroupPostFilter, which is not hosted, may change them.
func (h *handle) MutableSnapshotSharedLister() fwk.MutableSnapshotSharedLister {
	return unchanging{lister{h.p.host}}
}

// unchanging is a lister that refuses changes.
type unchanging struct{ lister }

func (unchanging) StartMutations() error                        { return absent("StartMutations") }
func (unchanging) EndMutations() error                          { return absent("EndMutations") }
func (unchanging) AddPod(fwk.PodInfo, string) error             { return absent("AddPod") }
func (unchanging) RemovePod(klog.Logger, *v1.Pod, string) error { return absent("RemovePod") }

// IterateOverWaitingPods calls f for each pod of the profile that waits for Permit.
func (h *handle) IterateOverWaitingPods(f func(fwk.WaitingPod)) {
	for _, w := range h.p.waitingPods() {
		f(w)
	}
}

// GetWaitingPod returns a pod that waits for Permit, nil if it does not.
func (h *handle) GetWaitingPod(uid types.UID) fwk.WaitingPod {
	if f := h.p.host.flightOf(cluster.UID(uid)); f != nil && f.p == h.p && f.waiting != nil && f.waiting.waits() {
		return f.waiting
	}
	return nil
}

// RejectWaitingPod rejects a pod that waits for Permit. It reports whether the pod was waiting.
func (h *handle) RejectWaitingPod(uid types.UID) bool {
	w := h.GetWaitingPod(uid)
	return w != nil && w.Reject("", "removed")
}

// AddPodInPreBind does nothing.
func (h *handle) AddPodInPreBind(types.UID, context.CancelCauseFunc) {}

// RemovePodInPreBind does nothing.
func (h *handle) RemovePodInPreBind(types.UID) {}

// ClientSet returns the client.
func (h *handle) ClientSet() clientset.Interface { return h.p.host.env.Client }

// KubeConfig returns the configuration of the client.
func (h *handle) KubeConfig() *restclient.Config { return h.p.host.env.Config }

// EventRecorder returns the recorder of events.
func (h *handle) EventRecorder() events.EventRecorderLogger { return h.p.host.env.Recorder }

// SharedInformerFactory returns informers. Those that factories request are started and synchronised before the first
// decision.
func (h *handle) SharedInformerFactory() informers.SharedInformerFactory {
	return h.p.host.env.Informers
}

// SharedDRAManager gives devices and the claims to them.
func (h *handle) SharedDRAManager() fwk.SharedDRAManager { return h.p.host.devices }

// SharedCSIManager gives CSINodes.
func (h *handle) SharedCSIManager() fwk.CSIManager { return csiManager{h.p.host} }

// Extenders is empty.
func (h *handle) Extenders() []fwk.Extender { return nil }

// Parallelizer returns a pool of goroutines.
func (h *handle) Parallelizer() fwk.Parallelizer { return parallelizer{} }

// APIDispatcher is nil, as upstream's without the gate SchedulerAsyncAPICalls.
func (h *handle) APIDispatcher() fwk.APIDispatcher { return nil }

// APICacher is nil, as APIDispatcher.
func (h *handle) APICacher() fwk.APICacher { return nil }

// ProfileName returns the scheduler name of the profile.
func (h *handle) ProfileName() string { return h.p.name }

// PodGroupManager gives native pod groups and their pods.
func (h *handle) PodGroupManager() fwk.PodGroupManager { return podGroups{h.p.host} }

// SignPod is nil: no pod is signed.
func (h *handle) SignPod(context.Context, *v1.Pod) fwk.PodSignature { return nil }

// Activate makes pods be tried at once.
func (h *handle) Activate(_ klog.Logger, pods map[string]*v1.Pod) {
	h.p.host.activate(pods)
}

// activate makes the engine try pods at once.
func (h *Host) activate(pods map[string]*v1.Pod) {
	if h.env.Post == nil {
		return
	}
	var refs []record.PodRef
	for _, p := range pods {
		refs = append(refs, record.PodRef{Namespace: p.Namespace, Name: p.Name, UID: string(p.UID)})
	}
	slices.SortFunc(refs, func(a, b record.PodRef) int { return cmp.Compare(a.Key(), b.Key()) })
	h.env.Post(message.Activate{Pods: refs})
}

// parallelizer runs pieces of work on upstream's default number of goroutines.
type parallelizer struct{}

const parallelism = 16

// Until calls f for each piece, until the context ends.
func (parallelizer) Until(ctx context.Context, pieces int, f workqueue.DoWorkPieceFunc, _ string) {
	workqueue.ParallelizeUntil(ctx, parallelism, pieces, f)
}
