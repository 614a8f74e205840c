// SPDX-License-Identifier: Apache-2.0

package effects

import apierrors "k8s.io/apimachinery/pkg/api/errors"

// refusalKind is what an error says for certain about a bind.
type refusalKind uint8

const (
	notRefused refusalKind = iota // nothing is certain
	refused                       // it was not done and will not be
	vanished                      // there is no such pod
)

// refusal reads an error of a bind. A conflict is not a refusal: the pod may be bound, by this very bind when its first
// answer was lost.
func refusal(err error) refusalKind {
	switch {
	case apierrors.IsNotFound(err):
		return vanished
	case apierrors.IsBadRequest(err), apierrors.IsUnauthorized(err), apierrors.IsForbidden(err),
		apierrors.IsInvalid(err), apierrors.IsMethodNotSupported(err), apierrors.IsRequestEntityTooLargeError(err),
		apierrors.IsNotAcceptable(err),
		apierrors.IsUnsupportedMediaType(err), apierrors.IsGone(err):
		return refused
	}
	return notRefused
}

// definite reports whether the API server refused and would refuse again.
func definite(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsNotFound(err) || apierrors.IsRequestEntityTooLargeError(err)
}
