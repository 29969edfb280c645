{{/* One Sandyard per cluster: its names are fixed, as those of its CRDs are. */}}
{{- define "sandyard.operator" -}}sandyard-operator{{- end }}
{{- define "sandyard.uninstall" -}}sandyard-uninstall{{- end }}
{{- define "sandyard.operatorUser" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "sandyard.operator" . }}
{{- end }}

{{/* What selects the operator's pods; never changes, since a Deployment's selector cannot. */}}
{{- define "sandyard.selector" -}}
app.kubernetes.io/name: sandyard
app.kubernetes.io/component: operator
{{- end }}

{{- define "sandyard.labels" -}}
app.kubernetes.io/name: sandyard
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* Pod Security "restricted", and more. */}}
{{- define "sandyard.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10000
runAsGroup: 10000
seccompProfile:
  type: RuntimeDefault
{{- end }}
{{- define "sandyard.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "sandyard.operatorImage" -}}
{{ required "set operator.image to the operator's image, by digest (make image-list prints it)" .Values.operator.image }}
{{- end }}
