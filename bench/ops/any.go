// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/kumiki-scheduler/kumiki/bench/workload"
)

const (
	// temporary is how long a kind may be unknown that was created a moment ago (scheduler_perf, createAny).
	temporary = 20 * time.Second
	// againAfter is how long after such an answer the next try is.
	againAfter = 200 * time.Millisecond
	// strict lets the API server refuse fields that it does not know; an object without a type would lose them in silence.
	strict = "Strict"
)

// objectName is how errors name an object.
func objectName(o *unstructured.Unstructured) string {
	if o.GetNamespace() == "" {
		return o.GetKind() + " " + o.GetName()
	}
	return o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
}

// resource finds where an object lives.
func (r *run) resource(o *unstructured.Unstructured) (*meta.RESTMapping, error) {
	gvk := o.GroupVersionKind()
	mapping, err := r.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, fmt.Errorf("find the resource of %s: %w", objectName(o), err)
	}
	return mapping, nil
}

// inScope is where the objects of an operation live: in its namespace, or in the cluster if it names none. A kind that
// lives in the other is a mistake of the workload.
func (r *run) inScope(o *unstructured.Unstructured, namespace string) (dynamic.ResourceInterface, error) {
	mapping, err := r.resource(o)
	if err != nil {
		return nil, err
	}
	namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace
	switch {
	case namespaced && namespace == "":
		return nil, fmt.Errorf("%s needs a namespace", objectName(o))
	case !namespaced && namespace != "":
		return nil, fmt.Errorf("%s is of no namespace, and %s is given", objectName(o), namespace)
	case namespaced:
		o.SetNamespace(namespace)
		return r.Dynamic.Resource(mapping.Resource).Namespace(namespace), nil
	}
	return r.Dynamic.Resource(mapping.Resource), nil
}

// ofTemplate reads the template of any objects.
func ofTemplate(t *workload.Template) (maker[*unstructured.Unstructured], error) {
	return makerOf[unstructured.Unstructured](t)
}

// createAny creates the objects of an operation.
func (r *run) createAny(ctx context.Context, namespace string, count int, t *workload.Template) error {
	make, err := ofTemplate(t)
	if err != nil {
		return err
	}
	if namespace != "" {
		if err := r.ensureNamespace(ctx, namespace); err != nil {
			return err
		}
	}
	return r.each(ctx, count, func(ctx context.Context, i int) error {
		o, err := make(i, count)
		if err != nil {
			return err
		}
		name(o, r.index, i)
		r.noteIfPod(o, namespace, r.index)
		return r.createPatiently(ctx, o, namespace)
	})
}

// noteIfPod lets the watch know when a pod was asked for. No barrier waits for it.
func (r *run) noteIfPod(o *unstructured.Unstructured, namespace string, op int) {
	if o.GetAPIVersion() == "v1" && o.GetKind() == "Pod" {
		r.Watch.ask(&entry{Pod: Pod{Namespace: namespace, Name: o.GetName(), Labels: o.GetLabels(), Op: op, Asked: r.Clock.Now()}})
	}
}

// createPatiently creates an object; while its kind is not served yet, it tries again.
func (r *run) createPatiently(ctx context.Context, o *unstructured.Unstructured, namespace string) error {
	until := r.Clock.Now().Add(temporary)
	for {
		err := r.create(ctx, o, namespace)
		if !unknown(err) || !r.Clock.Now().Before(until) {
			return err
		}
		// It remembers what it has not found.
		r.mapper.Reset()
		if paused := r.pause(ctx, againAfter); paused != nil {
			return errors.Join(err, paused)
		}
	}
}

// unknown reports whether an error may come from a definition or a namespace that the API server does not serve yet.
func unknown(err error) bool {
	return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsServiceUnavailable(err)
}

func (r *run) create(ctx context.Context, o *unstructured.Unstructured, namespace string) error {
	where, err := r.inScope(o, namespace)
	if err != nil {
		return err
	}
	if _, err := where.Create(ctx, o, metav1.CreateOptions{FieldValidation: strict}); err != nil {
		return fmt.Errorf("create %s: %w", objectName(o), err)
	}
	return nil
}

// updateAny replaces objects, or what a subresource of them is about. What the template says of the status is written
// too, which the object itself does not take.
func (r *run) updateAny(ctx context.Context, op *workload.UpdateAny) error {
	make, err := ofTemplate(&op.Template)
	if err != nil {
		return err
	}
	return r.inTurn(ctx, op.Count, op.PerSecond, func(i int) error {
		o, err := make(i, op.Count)
		if err != nil {
			return err
		}
		where, err := r.inScope(o, op.Namespace)
		if err != nil {
			return err
		}
		_, hasStatus := o.Object["status"]
		if len(op.Subresources) == 0 {
			if _, err := where.Update(ctx, o, metav1.UpdateOptions{FieldValidation: strict}); err != nil {
				return fmt.Errorf("update %s: %w", objectName(o), err)
			}
			if !hasStatus {
				return nil
			}
			if _, err := where.UpdateStatus(ctx, o, metav1.UpdateOptions{FieldValidation: strict}); err != nil {
				return fmt.Errorf("update the status of %s: %w", objectName(o), err)
			}
			return nil
		}
		for _, sub := range op.Subresources {
			if _, err := where.Update(ctx, o, metav1.UpdateOptions{FieldValidation: strict}, sub); err != nil {
				return fmt.Errorf("update %s of %s: %w", sub, objectName(o), err)
			}
		}
		return nil
	})
}

// anywhere is where an object of a churn lives: in the namespace if its kind lives in namespaces, else in the cluster.
func (r *run) anywhere(o *unstructured.Unstructured, namespace string) (dynamic.ResourceInterface, error) {
	mapping, err := r.resource(o)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return r.inScope(o, corev1.NamespaceAll)
	}
	return r.inScope(o, namespace)
}
