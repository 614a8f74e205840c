// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// clusterName is what kubeconfig files call the cluster; users see it in
// `kubectl config get-contexts`.
const clusterName = "kumiki-local"

// Kubeconfig gives a self-contained kubeconfig: server is an https URL, caPEM
// the authority of its certificate, user the client pair.
func Kubeconfig(server string, caPEM []byte, userName string, user Pair) ([]byte, error) {
	context := userName + "@" + clusterName
	out, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{
			clusterName: {Server: server, CertificateAuthorityData: caPEM},
		},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{
			userName: {ClientCertificateData: user.CertPEM, ClientKeyData: user.KeyPEM},
		},
		Contexts: map[string]*clientcmdapi.Context{
			context: {Cluster: clusterName, AuthInfo: userName},
		},
		CurrentContext: context,
	})
	if err != nil {
		return nil, fmt.Errorf("encode kubeconfig of %s: %w", userName, err)
	}
	return out, nil
}
