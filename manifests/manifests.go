// Package manifests holds the YAML that makes a cluster a taskctl cluster, and
// embeds it into the program. The appliance applies it with internal/install;
// in a real cluster kubectl does:
//
//	crds           the CustomResourceDefinition of Task, generated from operator/api/v1
//	rbac           namespace taskctl-system, service accounts, least-privilege roles, roles for users
//	policies       admission policies that the API server evaluates by itself
//	registrations  webhook configurations and the APIService; they take effect at once,
//	               so they are applied only when what they point at answers
//	samples        Tasks to try
//	deploy         operator and aggregator as Deployments, for a real cluster
//
// The package does nothing but embed: who applies what, and when, is decided
// elsewhere.
package manifests

import "embed"

// FS holds the folders crds, rbac, policies, registrations, samples and deploy.
//
//go:embed crds rbac policies registrations samples deploy
var FS embed.FS
