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
	// temporary is how long a newly created kind may be unknown (scheduler_perf, createAny).
	temporary = 20 * time.Second
	// againAfter is the wait before the next try after such an answer.
	againAfter = 200 * time.Millisecond
	// strict makes the API server reject unknown fields; an object without a type would lose them silently.
	strict = "Strict"
)

// objectName returns the name of an object in errors.
func objectName(o *unstructured.Unstructured) string {
	if o.GetNamespace() == "" {
		return o.GetKind() + " " + o.GetName()
	}
	return o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
}

// resource returns the REST mapping of the kind of an object.
func (r *run) resource(o *unstructured.Unstructured) (*meta.RESTMapping, error) {
	gvk := o.GroupVersionKind()
	mapping, err := r.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, fmt.Errorf("find the resource of %s: %w", objectName(o), err)
	}
	return mapping, nil
}

// inScope returns the client for the objects of an operation: of its namespace, or of the cluster if it names none. A
// kind of the other scope is a mistake of the workload.
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

// noteIfPod records in the watch when a pod was created. No barrier waits for it.
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
		// The mapper caches negative results.
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

// updateAny replaces objects, or a subresource of them. It also writes the status of the template, which an update of
// the object ignores.
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

// anywhere returns the client for an object of a churn: of the namespace if its kind is namespaced, otherwise of the
// cluster.
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
