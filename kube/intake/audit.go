// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/kumiki-scheduler/kumiki/kube/call"
	"github.com/kumiki-scheduler/kumiki/kube/metrics"
)

// DefaultAuditPeriod is how often the watches are checked: often enough that a pod that a watch lost waits a
// minute and not endlessly, seldom enough that the lists are nothing beside what the watches bring.
const DefaultAuditPeriod = time.Minute

const (
	// auditPage and auditPods bound a look: how much is asked for at once, and at how many waiting pods it looks.
	auditPage, auditPods = 500, 5000
	// auditRest is how many periods pass at least between two times that everything is listed afresh.
	auditRest = 3
)

// Auditor finds changes that watches lost: a watch can lose an event and stay up (kubernetes#94437; half of the bugs in
// etcd's table of robustness tests are of this kind), and then a pod waits endlessly, or a node is seen as it was. It
// compares the versions of all nodes and of the pods that wait with those that the watches brought. Pods that are bound
// are not compared: the list would be as long as the cluster is large.
//
// What lags is not lost: a difference counts when it is the same a while later. Then everything is listed afresh, for a
// watch that lost one event may have lost others.
type Auditor struct {
	inbox *Inbox
	// list reads the metadata of objects, page by page.
	list func(ctx context.Context, resource string, o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error)
	// relist lists everything afresh.
	relist         func()
	metrics        *metrics.Metrics
	period, settle time.Duration
}

// seenKey names an object of a watch.
type seenKey struct {
	watch string
	objectKey
	uid string
}

// versions are how an object is known here and at the API server; here is 0 for one that is not known.
type versions struct{ here, there uint64 }

// NewAuditor returns an auditor of these watches. relist lists everything afresh.
func NewAuditor(inf *Informers, metrics *metrics.Metrics, period time.Duration, relist func()) *Auditor {
	return &Auditor{inbox: inf.inbox, list: metadataOf(inf.Client), metrics: metrics, period: period,
		settle: min(period, 5*time.Second), relist: relist}
}

// Run checks the watches once a period until ctx ends. A period of 0 means never.
func (a *Auditor) Run(ctx context.Context) {
	if a.period <= 0 {
		return
	}
	for call.Sleep(ctx, a.period) {
		lost, err := a.look(ctx)
		switch {
		case err != nil:
			klog.FromContext(ctx).V(2).Info("Watches could not be checked", "err", err)
		case len(lost) > 0:
			a.tell(ctx, lost)
			a.relist()
			if !call.Sleep(ctx, auditRest*a.period) {
				return
			}
		}
	}
}

func (a *Auditor) tell(ctx context.Context, lost []seenKey) {
	names := make([]string, 0, 5)
	for _, k := range lost {
		a.metrics.WatchGaps.WithLabelValues(k.watch).Inc()
		if len(names) < cap(names) {
			names = append(names, k.watch+" "+k.namespace+"/"+k.name)
		}
	}
	klog.FromContext(ctx).Info("A watch did not tell of changes; everything is listed afresh", "count", len(lost),
		"first", names)
}

// look returns what the watches did not tell in time, sorted.
func (a *Auditor) look(ctx context.Context) ([]seenKey, error) {
	if a.inbox.Behind() {
		return nil, nil // it is being listed just now
	}
	first, err := a.differences(ctx)
	if err != nil || len(first) == 0 || !call.Sleep(ctx, a.settle) {
		return nil, err
	}
	again, err := a.differences(ctx)
	if err != nil || a.inbox.Behind() {
		return nil, err
	}
	maps.DeleteFunc(first, func(k seenKey, v versions) bool {
		now, differs := again[k]
		return !differs || now.here != v.here
	})
	return slices.SortedFunc(maps.Keys(first), func(a, b seenKey) int {
		return compareKeys(a.objectKey, b.objectKey)
	}), nil
}

// differences are the objects that the API server has in a later version than is known here.
func (a *Auditor) differences(ctx context.Context) (map[seenKey]versions, error) {
	out := map[seenKey]versions{} // object -> its versions
	type lookup = func(metav1.PartialObjectMetadata) (string, bool)
	compare := func(watch string, here lookup) func([]metav1.PartialObjectMetadata) {
		return func(page []metav1.PartialObjectMetadata) {
			for _, m := range page {
				known, matters := here(m)
				v := versions{number(known), number(m.ResourceVersion)}
				if matters && v.here < v.there {
					out[seenKey{watch, objectKey{m.Namespace, m.Name}, string(m.UID)}] = v
				}
			}
		}
	}
	nodes := compare("nodes", func(m metav1.PartialObjectMetadata) (string, bool) {
		return a.inbox.nodeVersion(m.Name), true
	})
	if err := a.pages(ctx, "nodes", metav1.ListOptions{}, 0, nodes); err != nil {
		return nil, err
	}
	pods := compare("pods", a.inbox.waitingVersion)
	err := a.pages(ctx, "pods", metav1.ListOptions{FieldSelector: "spec.nodeName=," + Unfinished}, auditPods, pods)
	return out, err
}

// pages reads a list page by page, up to most objects when that is not 0.
func (a *Auditor) pages(ctx context.Context, resource string, o metav1.ListOptions, most int,
	each func([]metav1.PartialObjectMetadata)) error {
	o.Limit = auditPage
	for n := 0; ; {
		page, err := a.list(ctx, resource, o)
		if err != nil {
			return fmt.Errorf("listing %s: %w", resource, err)
		}
		each(page.Items)
		n += len(page.Items)
		if o.Continue = page.Continue; o.Continue == "" || most > 0 && n >= most {
			return nil
		}
	}
}

// number is a resource version, which is a number that grows (KEP-5504); 0 for none and for what is not one.
func number(version string) uint64 {
	n, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// metadataOf lists the metadata of objects of the core group, without the rest.
func metadataOf(
	client kubernetes.Interface,
) func(context.Context, string, metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	const metadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
	return func(ctx context.Context, resource string, o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
		core, ok := client.CoreV1().RESTClient().(*rest.RESTClient)
		if !ok || core == nil {
			return &metav1.PartialObjectMetadataList{}, nil // a client for tests, which keeps no versions
		}
		ctx, cancel := context.WithTimeout(ctx, call.Timeout)
		defer cancel()
		raw, err := core.Get().Resource(resource).VersionedParams(&o, scheme.ParameterCodec).
			SetHeader("Accept", metadata).Do(ctx).Raw()
		if err != nil {
			return nil, err
		}
		out := &metav1.PartialObjectMetadataList{}
		if err := json.Unmarshal(raw, out); err != nil {
			return nil, fmt.Errorf("decoding: %w", err)
		}
		return out, nil
	}
}
