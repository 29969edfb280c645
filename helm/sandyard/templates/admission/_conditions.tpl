{{/* CEL: the object under this name is a pod of ours, by name or by label. */}}
{{- define "sandyard.isOurs" -}}
({{ . }} != null && ({{ . }}.metadata.name.startsWith('sandyard-') ||
{{- " " }}(has({{ . }}.metadata.labels) && {{ . }}.metadata.labels.exists(key, key.startsWith('sandyard.dev/')))))
{{- end }}

{{/* CEL: the request is about a pod of the chart itself, which ordinary controllers create. */}}
{{- define "sandyard.isChartPod" -}}
(request.namespace == '{{ .Release.Namespace }}' && object.metadata.name.matches('^sandyard-(operator|uninstall)-'))
{{- end }}

{{/* CEL: who asks is the operator. */}}
{{- define "sandyard.isOperator" -}}
request.userInfo.username == '{{ include "sandyard.operatorUser" . }}'
{{- end }}

{{/* CEL: who asks may write the status of tasks in every namespace, as no tenant may: an administrator. */}}
{{- define "sandyard.isAdministrator" -}}
authorizer.group('sandyard.dev').resource('sandboxtasks').subresource('status').check('update').allowed()
{{- end }}

{{/* CEL: who asks is part of Kubernetes: the garbage collector, the namespace controller and the like. */}}
{{- define "sandyard.isController" -}}
(request.userInfo.username == 'system:kube-controller-manager' ||
{{- " " }}request.userInfo.username.startsWith('system:serviceaccount:kube-system:'))
{{- end }}

{{- define "sandyard.policyBinding" }}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ .name }}
  labels:
    {{- include "sandyard.labels" .root | nindent 4 }}
spec:
  policyName: {{ .name }}
  validationActions: [Deny]
{{- end }}
