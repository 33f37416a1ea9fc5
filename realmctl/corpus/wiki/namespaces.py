"""Namespaces and the codes of languages: what the text before the colon of a link means.

Sources: MediaWiki 1.39 (languages/messages: the names and the old names of each language and of those that it falls back
on), and Wikimedia's configuration of August 2026 (langlist; the namespace aliases of each Wikipedia).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from realmctl.corpus.wiki.names import words

FILES = 6
HIDDEN_KEYS = (FILES, 14, -2)
"""The namespaces of files, categories and media: a link to them shows no word of the running text."""
ENGLISH = frozenset(["file", "image", "media", "category"])
OTHER_PROJECTS = words("""
    wikt wiktionary s wikisource w wikipedia q wikiquote b wikibooks n wikinews v wikiversity voy wikivoyage species
    wikispecies commons c m meta mw d wikidata bugzilla phab doi hdl rfc arxiv special user template wp project help
    portal talk module draft book mediawiki mos cat
""") | {"user talk"}
"""Prefixes of links to other projects, and namespaces of English Wikipedia without articles."""


@dataclass(frozen=True)
class Namespaces:
    """The names of a site's namespaces, in lower case, and its language.

    Attributes:
        hidden: a link to such a page is dropped with its content (files, categories).
        elsewhere: the label of such a link stays, but its target is no article (other projects, users, portals).
        variants: the variants of Chinese whose words are chosen where a page has several, the likeliest first. Empty for another language.
        language: the code, such as fr, for templates. Empty where it is not known.
    """

    hidden: frozenset[str] = ENGLISH
    elsewhere: frozenset[str] = OTHER_PROJECTS
    variants: tuple[str, ...] = ()
    language: str = ""


def normalized(name: str) -> str:
    """Return the name of a namespace as it is compared: in lower case, with spaces."""
    return " ".join(name.replace("_", " ").lower().split())


def namespaces(own: Mapping[str, int], language: str = "", variants: tuple[str, ...] = ()) -> Namespaces:
    """Return the namespaces of a site by its own names, such as {"Datei": 6}, and by all names of its language.

    A German dump has [[Bild:...]] from before `Datei` was introduced. Where the dump states no language, those count
    whose namespace of files has the site's name.
    """
    hidden = {normalized(name) for name, key in own.items() if key in HIDDEN_KEYS}
    elsewhere = {normalized(name) for name, key in own.items() if key and key not in HIDDEN_KEYS}
    files = {normalized(name) for name, key in own.items() if key == FILES} - ENGLISH
    known = list(_names_of_languages())
    stated = [names for codes, names in known if language.lower() in codes]
    for names in stated or [names for _, names in known if not files.isdisjoint(names)]:
        hidden |= names
    return Namespaces(ENGLISH | hidden, (OTHER_PROJECTS | elsewhere) - hidden, variants, language.lower())


def _names_of_languages() -> Iterator[tuple[list[str], set[str]]]:
    for line in NAMES.strip().split("\n"):
        codes, _, names = line.partition(": ")
        yield codes.split(), {name.replace("_", " ") for name in names.split()}


LANGUAGES = words("""
aa ab ace ady af ak als alt am ami an ang ann anp ar arc ary arz as ast atj av avk awa ay az azb ba ban bar
bat-smg bbc bcl bdr be be-tarask be-x-old bew bg bh bi bjn blk bm bn bo bol bpy br bs btm bug bxr ca cbk-zam
cdo ce ceb ch cho chr chy ckb co cr crh cs csb cu cv cy cz da dag de dga din diq dk dsb dtp dty dv dz ee egl
el eml en eo epo es et eu ext fa fat ff fi fiu-vro fj fo fon fr frp frr fur fy ga gag gan gcr gd gl glk gn gom
gor got gpe gsw gu guc gur guw gv ha hak haw he hi hif ho hr hsb ht hu hy hyw hz ia iba id ie ig igl ii ik ilo
inh io is isv it iu ja jam jbo jp jv ka kaa kab kai kaj kbd kbp kcg kg kge ki kj kk kl km kn knc ko koi kr krc
ks ksh ku kus kv kw ky la lad lb lbe lez lfn lg li lij lld lmo ln lo lrc lt ltg lv lzh mad mag mai map-bms mdf
mg mh mhr mi min minnan mk ml mn mni mnw mo mos mr mrj ms mt mus mwl my myv mzn na nah nan nap nb nds nds-nl
ne new ng nia nl nn no nomcom nov nqo nr nrm nso nup nv ny oc olo om or os pa pag pam pap pcd pcm pdc pfl pi
pih pl pms pnb pnt ppl ps pt pwn qu rki rm rmy rn ro roa-rup roa-tara rsk ru rue rup rw sa sah sat sc scn sco
sd se sg sgs sh shi shn shy si simple sk skr sl sm smn sn so sq sr srn ss st stq su sv sw syl szl szy ta tay
tcy tdd te tet tg th ti tig tk tl tly tn to tok tokipona tpi tr trv ts tt tum tw ty tyv udm ug uk ur uz ve vec
vep vi vls vo vro wa war wo wuu xal xh xmf yi yo yue za zea zgh zh zh-cfr zh-classical zh-cn zh-min-nan zh-tw
zh-yue zu
""")
"""The codes of languages before a link to another Wikipedia."""

# codes of languages: names of the namespaces of files, categories and media, with "_" for a space
NAMES = """
ab: акатегориа амедиа афаил изображение к категория медиа файл
abs bbc bbc-latn btm bug id min nia: berkas gambar kategori
ace: alat berkas beureukaih gambar kategori kawan
ady ady-cyrl: медиа
aeb aeb-arab ar arq arz: تصنيف صورة ملف ميديا وسائط
af: beeld kategorie lêer
ak: nkyekyem
aln sq: figura kategori kategoria skeda
alt av gld koi krc kum kv ru sjd sty: изображение к категория медиа файл
am: መደብ ስዕል ፋይል
ami: cat faylo kasasiwasiw mitiya 分类 分類 图像 图片 圖像 圖片 媒体 媒体文件 媒体档案 媒體 媒體文件 媒體檔案 文件 档案 檔案
an: archivo cat categoría imachen imagen medio
ang: biliþ flocc ymele
anp hi: चित्र मीडिया श्र श्रेणी
arc: ܠܦܦܐ ܡܝܕܝܐ ܣܕܪܐ
arn ay cbk-zam es es-formal guc: archivo cat categoría imagen medio
ary: تصنيف صورة فيشي ملف ميديا وسائط
as: cat चित्र श्रेणी চিত্র চিত্ৰ মাধ্যম শ্রেণী শ্ৰেণী
ast: archivo archivu cat categoría ficheru imagen imaxe imaxen medio medios
atj: catégorie fichier média natisinahikaniwoc tipanictawin tipatcimoctakewin
avk: archivo cat categoría catégorie ewava fichier imagen iyeltak kanaca loma mamind medio média изображение к категория медиа файл
awa: चित्र फाइल मीडिया श्र श्रेणी
az: fayl fl kat kateqoriya mediya şəkil
azb: بؤلمه تصویر رده رسانه رسانه‌ای فایل مدیا پرونده
ba: изображение к категория медиа рәсем төркөм файл
ban ban-bali su: berkas gambar kategori média
bar de de-at de-ch de-formal frr gsw hrx nds pdt sli: bild datei kategorie medium
bcc: تصویر دسته رده رسانه رسانه‌ای عکس مدیا پرونده
bci bm ff fr frc kbp ln nrm pcd ses sg ty: catégorie fichier média
bcl: kategorya ladawan medio
be: выява катэгорыя мультымедыя файл
be-tarask: выява катэгорыя мультымедыя мэдыя файл
bg: картинка категория медия файл
bgn: اکس تصویر تهر رده رسانه رسانه‌ای رسانگ مدیا میڈیا ورق پرونده
bh bho ne: चित्र मीडिया श्रेणी
bjn: barakas berkas gambar kategori tumbung
blk: ကဏ္ဍ ဖိုင် ဖုဲင် မီဒီယာ
bn: চিত্র বিষয়শ্রেণী মিডিয়া
bpy: চিত্র ছবি থাক বিষয়শ্রেণী মিডিয়া
bqi fa lki luz sdh: تصویر رده رسانه رسانه‌ای مدیا پرونده
br: restr rummad skeudenn
bs: datoteka kategorija medija mediji slika
bxr: изображение к категори категория меди медиа файл
ca oc: categoria catégorie fichier fichièr fitxer imatge mèdia média
cdo nan: cat lūi-pia̍t mûi-thé tóng-àn 分类 分類 图像 图片 圖像 圖片 媒体 媒体文件 媒体档案 媒體 媒體文件 媒體檔案 文件 档案 檔案
ce: изображение к кадегар категори категория медиа медйа сурт тоба файл хlум
ceb: imahen kategoriya medya payl
ch: katigoria litratu
ckb: میدیا پ پۆل پەڕگە
co egl eml it rgn roa-tara: cat categoria immagine
commons zh-classical: cat
crh crh-latn: fayl kategoriya resim категория медиа ресим
crh-cyrl: kategoriya resim изображение к категория медиа ресим файл
cs sk: kat kategorie kategória média médiá obrázok soubor súbor
csb: grafika kategoria kategòrëjô plik òbrôzk
cu: ви́дъ видъ дѣло категория катигорїꙗ катигорї срѣдьства
cv: изображение к категори категория медиа файл ӳкерчĕк
cy: categori delwedd
da jut: billede fil kategori
dag: lahabali_kɔligu miidiya pubu
din: apamduööt bekätakthook ciɛl
diq: dosya kategori kategoriye medya
dsb hsb: bild dataja datei kategorie kategorija medija medium wobraz
dtp ms: fail imej kategori
dty: चित्र मिडिया मीडिया श्रेणी
dv: މީޑިއާ ފައިލު ފައިލް ޤިސްމު
el: αρχείο εικόνα κατηγορία μέσο μέσον
eo: aŭdvidaĵo dosiero kategorio
et liv: fail kategooria meedia pilt
eu: fitxategi irudi kategoria
ext: archivo archivu cat categoria categoría imagen medio mediu
fat: fael nkyekyεmu
fi fit krl vot: kuva luokka tiedosto
fo: bólkur miðil mynd
fon: akpaxwé catégorie fichier média wékpo yɛwliɖonuji
frp: catègorie catégorie fichier fichiér mèdia média émâge
fur: cat categoria categorie figure immagine
fy: kategory ofbyld
ga: catagóir meán rang íomhá
gag: dosya dosye kat kategori kategoriya mediya medya ortam resim
gan gan-hans gan-hant: cat 分类 分類 图像 图片 圖像 圖片 媒体 媒体文件 媒体档案 媒體 媒體文件 媒體檔案 文件 文檔 档案 檔案
gcr: catégorie fichier fiché katégori média médja
gd: faidhle meadhan roinn-seòrsa
gl: arquivo cat categoria categoría ficheiro imagem imaxe multimédia mídia
glk: تصویر جرگه رده رسانه رسانه‌ای فاىل مديا مدیا پرونده
gn: archivo cat categoría imagen medio ta'ãnga ñemohenda
gom gom-deva: चित्र फायल माध्यम मिडिया मीडिया वर्ग श्र श्रेणी
gor: berkas dalala gambar kategori
got: 𐌷𐌰𐌽𐍃𐌰 𐍆𐌴𐌹𐌻𐌰
gu: cat ચિત્ર દ્રશ્ય-શ્રાવ્ય_(મિડિયા) શ્રે શ્રેણી
guw: adà wepo
gv: coadan meanyn ronney
hak hsn ii lzh wuu za zh zh-cn zh-hans zh-hant zh-hk zh-mo zh-my zh-sg zh-tw: cat 分类 分類 图像 图片 圖像 圖片 媒体 媒体文件 媒体档案 媒體 媒體文件 媒體檔案 文件 档案 檔案
haw: kiʻi māhele pāpaho waihona
he: מדיה קו קובץ קט קטגוריה תמונה
hif hif-latn: saadhan vibhag
hr: ct datoteka dt kategorija kt mediji slika
ht: catégorie fichier fichye imaj kategori medya média
hu hu-formal: fájl kategória kép média
hy: կատեգորիա մեդիա պատկեր
hyw: կատեգորիա մեդիա պատկեր ստորոգութիւն
ia: categoria imagine multimedia
ie: categorie
ig: midia nká usòrò ákwúkwó_orünotu ébéonọr òtù
ilo: kategoria midia papeles
inh: изображение к категория медиа оагӏат файл
io: arkivo aŭdvidaĵo dosiero imajo kategorio
is: flokkur miðill mynd
ja: カテゴリ ファイル メディア 画像
jbo: datnyvei klesi velsku
jv map-bms: barkas berkas gambar kategori medhia médhia
ka xmf: კატეგორია მედია სურათი ფაილი
kaa: kategoriya sanat su'wret swret taspa санат сурет таспа تاسپا سانات سۋرەت
kab zgh: catégorie fichier média taggayt tugna
kbd kbd-cyrl: категориэ категория медиа файл
kcg: fail sa
kea: arquivo cat categoria ficheiro fixeru imagem katiguria multimédia mídia
kg: fisye kalasi
khw ur: تصویر زریعہ زمرہ فائل ملف میڈیا وسیط
kiu: dosya dosye kat kategori kategoriye medya ortam resim
kjp ksw my: ကဏ္ဍ ဖိုင် မီဒီယာ
kk kk-arab kk-cn kk-cyrl kk-kz kk-latn kk-tr: sanat swret taspa санат сурет таспа تاسپا سانات سۋرەت
kl: billede fiileq fil kategori sumut_atassuseq
km: ចំណាត់ក្រុម ចំណាត់ថ្នាក់ក្រុម ចំនាត់ថ្នាក់ក្រុម មីឌា មេឌា រូបភាព ឯកសារ
kn: ಚಿತ್ರ ಮೀಡಿಯ ವರ್ಗ
ko ko-kp: 그림 미디어 분류 파일
ks ks-arab: زٲژ فَیِل میڈیا
ks-deva: ज़ॉज़ फ़ाइल मीडिया
ksh: beld belld bild datei kategorie katejori kattejori medie medium meedije meedijum saachjrop saachjropp saachjrupp sachjrop
ku ku-latn: kategorî medya wêne
ku-arab: kategorî medya wêne میدیا پ پۆل پەڕگە
kw: class klass restren
ky: категория медиа файл
la: categoria fasciculus imago
lad: archivo cat categoría dossia dosya imagen kateggoría katēggoría meddia medio medya
lb: bild datei fichier kategorie medium
lbe: изображение к категория медиа сурат файл
lez: fayl fl kat kateqoriya mediya şəkil изображение к категория медиа файл
lfn: categoria fix
li: aafbeilding afbeelding bestand categorie kategorie plaetje
lij: cat categoria categorîa immaggine immagine
lld: cat categoria categorie datoteca figure immagine multimedia
lmo: archivi cat categoria categorìa categorîa categuria figura immaggine immagine imàjine mèdia
lo: ສື່ ສື່ອ ຮູບ ໝວດ
lrc: أسگ تصویر جانیا دأسە رده رسانه رسانه‌ای مدیا پرونده ڤارئسگأر
lt: kategorija medija vaizdas
ltg: attēls fails kategoreja kategorija medeja
lv: attēls kategorija
lzz: dosya kat kategori kʼatʼegori medya ortam resim
mad: berkas bhengkek bhângsa gambar kategori mèḍia
mai: चित्र फाइल मीडिया मेडिया श्र श्रेणी
mdf myv: артовкс изображение к категорие категория медиа медия няйф файл
mg: catégorie fichier média rakitra sary sokajy
mhr mrj: изображение к категори категорий категория медиа файл
mk ruq-cyrl: категорија медиум медија податотека слика
ml: ചി ചിത്രം പ്ര പ്രമാണം മീഡിയ വ വി വിഭാഗം വർഗ്ഗം
mn: ангилал зураг медиа файл
mni: ꯃꯆꯥꯈꯥꯏꯕ ꯃꯦꯗꯤꯌꯥ ꯐꯥꯏꯜ
mnw: ကဏ္ဍ ဖိုင် မီဒီယာ မဳဒဳယာ ဝှာင်
mo ro rup ruq ruq-latn: categorie fişier fișier imagine
mr: चित्र मिडिया वर्ग
mrh: faih midia pho
ms-arab: fail imej kategori فاءيل ميديا کاتݢوري
mt: kategorija medja midja stampa
mwl: arquivo cat catadorie categoria fexeiro ficheiro imagem multimédia mídia
mzn: تصویر رج رده رسانه رسانه‌ای مدیا مه‌دیا پرونده
nah: archivo cat categoría imagen medio mēdiatl neneuhcāyōtl īxiptli
nap: cat categoria categurìa fiùra immagine
nb nn: bilde fil filpeikar kategori medium
nds-nl: afbeelding bestaand bestand categorie kategorie kattegerie ofbeelding
new: किपा पुचः माध्यम
nl nl-informal: afbeelding bestand categorie
nod: ᨼᩱᩃ᩺ ᩈᩨ᩵ ᩉ᩠ᨾ᩠ᩅᨯᩉ᩠ᨾᩪ᩵
nqo: ߞߐߕߐ߮ ߟߊߛߋߢߊߥߙߍ ߦߌߟߡߊ
nso: seswantšho setensele
nv: eʼelyaaígíí tʼááłáhági_átʼéego
olo: failu kategourii kuva luokka medii tiedosto
or: ଫାଇଲ ବିଭାଗ ମାଧ୍ୟମ ଶ୍ରେଣୀ
os: изображение к категори категория медиа ныв файл
pa: ਤਸਵੀਰ ਮੀਡੀਆ ਸ਼੍ਰੇਣੀ
pcm: katigori
pdc: abdeeling bild datei feil kategorie medium
pfl: bild dadai datei kadegorie kategorie medium sachgrubb
pi: पटिमा मीडिया विभाग
pl: grafika kategoria plik
pms: cat categoria categorìa figura immagine
pnb: تصویر فائل میڈیا گٹھ
pnt: αρχείο αρχείον εικόνα εικόναν κατηγορία κατηγορίαν μέσο μέσον
prg: kategōrija mēdijai zūrbrukis
ps: انځور دوتنه رسنۍ وېشنيزه
pt pt-br vmw: arquivo cat categoria ficheiro imagem multimédia mídia
pwn: cat mitiya pinapapilipiliqan sineqetj_a_vecik 分类 分類 图像 图片 圖像 圖片 媒体 媒体文件 媒体档案 媒體 媒體文件 媒體檔案 文件 档案 檔案
qu qug: archivo cat categoría imagen katiguriya medio midya rikcha samiyachiy
rm: categoria datoteca multimedia
rmy: categorie chitro fişier fișier imagine mediya shopni
rn: dosiye umuce
rsk: kategorija medija slika датотека категорија катеґория медий медиј медија слика файл
rue: зображення изображение к категория категорія катеґорія медиа медіа файл
rw: dosiye ikiciro itangazamakuru
sa: चित्र चित्रं चित्रम् माध्यम माध्यमम् मीडिया वर्गः श्र श्रेणी सञ्चिका
sah: билэ изображение к категория медиа миэдьийэ ойуу файл
sat: ᱛᱷᱚᱠ ᱢᱤᱰᱤᱭᱟ ᱨᱮᱫ
sc: categoria immàgini
scn: cat categoria catigurìa immagine mmàggini mèdia
sd: ذريعات زمرو عڪس فائل
sdc: cat categoria categuria immagina immagine
se se-no: bilde fiila fil filpeikar kategori kategoriija kuva luokka medium tiedosto
se-fi se-se: bild bilde fiila fil filpeikar kategori kategoriija kuva luokka medium tiedosto
sgs: abruozdielis kategorija kateguorėjė medija medėjė vaizdas
sh sh-latn: ct datoteka dt kat kategorija kt medij medija mediji slika датотека дт кат категорија кт медиј медија слика
shi: afaylu catégorie fichier midya média taggayt
shn: ပိူင်ထၢၼ်ႈ သိုဝ်ႇၶၢဝ်ႇ ၾၢႆႇ
shy shy-latn: afaylu alɣagdud catégorie fichier média taggayt
si: ගොනුව ප්‍රවර්ගය මාධ්‍යය රූපය
skr skr-arab: تصویر زریعہ زمرہ فائل ملف میڈیا وسیط ونکی گٹھ
sl: datoteka kategorija slika
smn: kuva luokka tiedosto tiätuvuárkká
sr sr-ec: kategorija medija slika датотека категорија медиј медија слика
sr-el: datoteka kategorija medij medija slika датотека категорија медиј медија слика
srn: afbeelding bestand categorie gefre guru
sro: cat categoria documentu immagine mèdius
stq: bielde bild datei kategorie medium
sv: bild fil kategori
sw: faili jamii picha
syl: ꠇꠦꠐꠣꠉꠞꠤ ꠚꠣꠁꠟ ꠝꠤꠒꠤꠀ
szl: grafika kategoria kategoryjo plik
szy: cat kakuniza myiti tangan 分类 分類 图像 图片 圖像 圖片 媒体 媒体文件 媒体档案 媒體 媒體文件 媒體檔案 文件 档案 檔案
ta: ஊடகம் பகுப்பு படிமம்
tay: biru'_na_zayzyuwaw biru’_na_zayzyuwaw cat zyuwaw_na 分类 分類 图像 图片 圖像 圖片 媒体 媒体文件 媒体档案 媒體 媒體文件 媒體檔案 文件 档案 檔案
tcy: ಚಿತ್ರ ಫೈಲ್ ಮಾದ್ಯಮೊ ಮೀಡಿಯ ವರ್ಗ ವರ್ಗೊ
te: దస్త్రం ఫైలు బొమ్మ మీడియా వర్గం
tet: arquivo cat categoria ficheiro imagem imajen kategoria kategoría multimédia mídia
tg tg-cyrl tg-latn: акс гурӯҳ медиа
th: noindex,follow ภาพ สื่อ หมวดหมู่ ไฟล์
ti: መደብ ሜድያ ፋይል
tk: faýl kategoriýa
tl: kategorya kaurian midya talaksan
tly: fajl medja tispir
tn: karolo pego setshwantsho
tpi: fail grup
tr: dosya kat kategori medya ortam resim
trv: cat meyti patas_bntasan snakun 分类 分類 图像 图片 圖像 圖片 媒体 媒体文件 媒体档案 媒體 媒體文件 媒體檔案 文件 档案 檔案
tt tt-cyrl: räsem törkem изображение к категория медиа рәсем төркем файл
tt-latn: fayl räsem törkem
tw: nkyekyεmu
tyv: аңгылал изображение к категория медиа файл
udm: изображение к категория медиа суред файл
ug ug-arab: تۈر ھۆججەت ۋاسىتە
uk: зображення изображение категория категорія медиа медіа файл
uz: fayl kategoriya mediya tasvir turkum
vec: cat categoria immagine imàjine mèdia
vep: fail kategooria kategorii meedia pilt
vi: hình phương_tiện thể_loại tập_tin
vls: afbeelding bestand categorie ofbeeldienge
vmf: bild datei dôdaj gadâgorii kategorie medium
vo: klad magod nünamakanäd ragiv
vro: fail kategooria katõgooria meedia meediä pilt
wa: categoreye catégorie fichier imådje média
war: fayl kaarangay medya paypay
wls: catégorie faʻahiga fichier koga média pāki
wo: catégorie dencukaay fichier média wàll xibaarukaay
xal: аһар боомг зург изображение к категория медиа файл янз әәшл
yi: בילד טעקע מדיה מעדיע קאַטעגאָריע קאטעגאריע קו קובץ קט קטגוריה תמונה
yo: amóhùnmáwòrán fáìlì àwòrán ẹ̀ka
yue: 分类 分類 图 图像 圖 圖像 媒体 媒體 文件 档 档案 檔 檔案 类 類
zea: afbeelding bestand categorie plaetje
zh-yue: 分類 媒體 文件
"""
